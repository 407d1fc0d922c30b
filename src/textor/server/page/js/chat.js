// @ts-check
/**
 * The open session as the page holds it: events in, items out.
 *
 * There is one reducer for each kind of event, and each may be given the same event twice. An
 * item's data is changed in place and the item marked; once per animation frame the marked ones
 * are handed to their signals, so that a burst of events draws once. Only items near the end are
 * in the document.
 */
import { batch, signal } from "./lib.js";
import { thoughtsOf } from "./thoughts.js";

/** How many items are in the document; "Show earlier" adds as many again. */
export const PAGE = 60;
const PACE = 50; // milliseconds between two drawings, where there is much to draw
const OUTPUT = 4000; // characters of a program's running output that are shown

export class Chat {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.seq = 0; // the last event that was taken
    this.head = 0; // where the session stood when we began to follow
    /** Deltas that came while the events before them were still being read. @type {Delta[]} */
    this.held = [];
    /** @type {Record<string, number>} */
    this.limits = {};
    /** @type {Item[]} */
    this.items = [];
    /** @type {Map<string, Item>} */
    this.byKey = new Map();
    /** @type {Map<string, AgentState>} */
    this.agents = new Map();
    this.usage = { input: 0, output: 0, cached: 0, cost: 0, unpriced: false, estimated: false };
    this.meta = { title: "", workspace: "", policy: "ask" };
    /** What waits for the person: keys of actions at the gate and of questions. @type {Set<string>} */
    this.waiting = new Set();
    this.error = signal("");
    /** Counts the flushes in which anything but an item changed. */
    this.changed = signal(0);
    this.total = signal(0);
    /** The index of the first item in the document; kept while the person reads further up. */
    this.from = signal(0);
    this.atEnd = true;
    /** @type {Set<Item>} */
    this.dirty = new Set();
    this.scheduled = false;
    this.drawn = 0;
    /** @type {(text: string) => void} */
    this.announce = () => {};
    /** @type {() => void} */
    this.listed = () => {};
  }

  /** Whether what comes now is news, not history. */
  get live() {
    return this.seq > this.head;
  }

  get running() {
    return [...this.agents.values()].some((agent) => agent.running);
  }

  /**
   * We begin to follow a session, or follow again: what a generation under way has said so far
   * comes anew.
   * @param {number} head
   */
  joined(head) {
    this.head = Math.max(this.head, head);
    this.held = [];
    for (const { open } of this.agents.values()) {
      if (open) this.change(open.key, { text: "", reasoning: "", drafting: "" });
    }
  }

  /** @param {SessionEvent} event */
  apply(event) {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    reducers[event.kind]?.(this, event.data, event);
    if (this.seq >= this.head) for (const delta of this.held.splice(0)) this.delta(delta);
    this.schedule();
  }

  /** @param {Delta} delta */
  delta(delta) {
    if (this.seq < this.head) return void this.held.push(delta); // it belongs behind what is being read
    const { agent, kind, text, action } = delta;
    if (!agent) {
      if (kind === "fault") this.error.value = text; // the host gave this session up
      return;
    }
    if (action) return this.actionDelta(`action:${action}`, kind, text);
    const state = this.agent(agent);
    if (state.open) this.grow(state.open, kind, text);
    else state.early.push([kind, text]); // the event that it began is still on its way
  }

  /** @param {Item} item @param {string} kind @param {string} text */
  grow(item, kind, text) {
    const data = item.data;
    if (kind === "text") data.text += text;
    else if (kind === "reasoning") data.reasoning += text;
    else if (kind === "action") data.drafting += `${data.drafting ? "\n" : ""}${text} `;
    else if (kind === "argument") data.drafting = (data.drafting + text).slice(-OUTPUT);
    data.status = kind === "progress" ? text : "";
    this.mark(item);
  }

  /** What a running action shows. @param {string} key @param {string} kind @param {string} text */
  actionDelta(key, kind, text) {
    const item = this.byKey.get(key);
    if (!item || item.data.outcome) return;
    if (kind === "output") this.change(key, { output: (item.data.output + text).slice(-OUTPUT) });
    else this.change(key, { progress: text });
  }

  /** The state of an agent, made when it is first heard of. @param {string} name */
  agent(name) {
    let state = this.agents.get(name);
    if (!state) {
      state = {
        model: "", type: "", running: false, level: "run", open: null, early: [], said: "",
        reviewed: false, review: "", steps: false,
      };
      this.agents.set(name, state);
    }
    return state;
  }

  /** @param {string} agent @param {string} key */
  openReply(agent, key) {
    const data = { agent, text: "", reasoning: "", drafting: "", status: "", open: true };
    const item = this.put(key, "reply", data);
    const state = this.agent(agent);
    state.open = item;
    for (const [kind, text] of state.early.splice(0)) this.grow(item, kind, text);
    return item;
  }

  /** Add an item at the end, unless it is there. @param {string} key @param {Item["type"]} type @param {any} data */
  put(key, type, data) {
    const known = this.byKey.get(key);
    if (known) return known;
    const item = { key, type, data, view: signal({ ...data }) };
    this.items.push(item);
    this.byKey.set(key, item);
    this.mark(item);
    return item;
  }

  /** @param {string} key @param {any} fields */
  change(key, fields) {
    const item = this.byKey.get(key);
    if (!item) return;
    Object.assign(item.data, fields);
    this.mark(item);
  }

  /** @param {Item} item */
  mark(item) {
    this.dirty.add(item);
    this.schedule();
  }

  /** Draw at the next frame, or a few frames later where one was drawn just now. */
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    const draw = () => requestAnimationFrame(() => this.flush());
    const rest = this.drawn + PACE - performance.now();
    if (rest > 8) setTimeout(draw, rest);
    else draw();
  }

  flush() {
    this.scheduled = false;
    this.drawn = performance.now();
    batch(() => {
      for (const item of this.dirty) item.view.value = { ...item.data };
      this.dirty.clear();
      if (this.atEnd) this.from.value = Math.max(0, this.items.length - PAGE);
      this.total.value = this.items.length;
      this.changed.value += 1;
    });
  }

  /** The review of an agent's reply is over. @param {string} agent @param {string} verdict */
  closeReview(agent, verdict) {
    const state = this.agent(agent);
    this.waiting.delete(state.review);
    const item = this.byKey.get(state.review);
    state.review = "";
    if (!item) return;
    this.change(item.key, { verdict });
    if (verdict !== "edit" && verdict !== "again") return;
    for (const id of item.data.actions) this.change(`action:${id}`, { state: "dropped" });
  }

  showEarlier() {
    this.atEnd = false;
    this.from.value = Math.max(0, this.from.peek() - PAGE);
  }

  /** @param {Usage | undefined} usage */
  spend(usage) {
    if (!usage) return;
    const sum = this.usage;
    sum.input += usage.input ?? 0;
    sum.output += usage.output ?? 0;
    sum.cached += usage.cached ?? 0;
    if (usage.cost == null) sum.unpriced ||= Boolean(usage.input || usage.output);
    else sum.cost += usage.cost;
    sum.estimated ||= Boolean(usage.estimated);
  }
}

/** The text parts of a message. @param {any} message @param {string} [type] */
function textOf(message, type = "text") {
  return (message?.parts ?? [])
    .filter((/** @type {any} */ p) => p.type === type)
    .map((/** @type {any} */ p) => p.text)
    .join("");
}

/**
 * What a reply says besides its actions: in some dialects the actions stand in the text, and they
 * are shown as cards already.
 * @param {any} data of generation.finished
 */
function prose(data) {
  if (data.reply) return data.reply;
  let text = textOf(data.message);
  for (const action of data.actions ?? []) if (action.text) text = text.replace(action.text, "");
  return text.trim();
}

/** @param {any} data */
function actionItem(data) {
  return { ...data, state: data.fault ? "failed" : "proposed", reason: "", output: "", outcome: null };
}

/** @param {any} data of generation.finished */
function reviewItem(data) {
  const actions = data.actions ?? [];
  const native = actions.filter((/** @type {any} */ a) => a.call_id);
  return {
    agent: data.agent,
    text: textOf(data.message),
    native: native.length > 0,
    calls: native.map((/** @type {any} */ a) => ({ capability: a.capability, arguments: a.arguments ?? {} })),
    actions: actions.map((/** @type {any} */ a) => a.id),
    verdict: "",
  };
}

/** @type {Record<string, (chat: Chat, data: any, event: SessionEvent) => void>} */
const reducers = {
  "session.created"(chat, data) {
    chat.meta = { title: data.title ?? "", workspace: data.workspace, policy: data.policy ?? "ask" };
    chat.limits = data.limits ?? {};
  },
  "session.policy"(chat, data) {
    chat.meta.policy = data.policy;
  },
  "session.limits"(chat, data, event) {
    const names = Object.entries(data.limits ?? {}).map(([name, value]) => `${name} ${value}`);
    if (!data.agent) chat.limits = data.limits ?? {};
    chat.put(event.id, "note", { agent: data.agent ?? "", text: `Limits are now: ${names.join(", ") || "none"}.` });
  },
  "agent.created"(chat, data, event) {
    const { type = "", review = false, dialects = [] } = data.definition ?? {};
    const steps = dialects[0] === "step";
    Object.assign(chat.agent(data.agent), { model: data.model, type, reviewed: review, steps });
    if (data.caller) chat.put(event.id, "note", { agent: "", text: `${data.agent} begins.` });
  },
  "agent.model"(chat, data, event) {
    chat.agent(data.agent).model = data.model;
    chat.put(event.id, "note", { agent: data.agent, text: `The model is now ${data.model}.` });
  },
  "message.posted"(chat, data, event) {
    const fields = { agent: data.agent, sender: data.sender ?? "", text: data.text, time: event.time };
    chat.put(`message:${event.id}`, "message", { ...fields, delivered: false });
    if (chat.live) chat.listed();
  },
  "message.delivered"(chat, data) {
    for (const id of data.ids) chat.change(`message:${id}`, { delivered: true });
    const agent = chat.agent(data.agent);
    if (!agent.running) Object.assign(agent, { running: true, said: "" });
  },
  "generation.started"(chat, data, event) {
    const agent = chat.agent(data.agent);
    agent.running = true;
    if (!agent.open) chat.openReply(data.agent, event.id);
    else if ((data.attempt ?? 1) > 1) chat.change(agent.open.key, { text: "", reasoning: "", drafting: "" });
  },
  "generation.waiting"(chat, data) {
    const item = chat.agent(data.agent).open;
    const status = `The server asks to wait ${Math.ceil(data.seconds * 10) / 10} s (${data.reason}).`;
    if (item) chat.change(item.key, { status, text: "", reasoning: "", drafting: "" });
  },
  "generation.finished"(chat, data, event) {
    const agent = chat.agent(data.agent);
    const item = agent.open ?? chat.openReply(data.agent, event.id);
    Object.assign(agent, { open: null, early: [] });
    const thoughts = agent.steps ? thoughtsOf(data.message, textOf(data.message)) : "";
    agent.said = thoughts && (data.think || data.actions?.length) ? "" : prose(data);
    const reasoning = textOf(data.message, "reasoning");
    const faults = data.faults ?? [];
    const cut = data.finish === "cut";
    const text = agent.said;
    chat.change(item.key, { open: false, text, thoughts, reasoning, faults, cut, drafting: "", status: "" });
    chat.spend(data.usage);
    for (const action of data.actions ?? []) {
      chat.put(`action:${action.id}`, "action", { ...actionItem(action), agent: data.agent });
    }
    if (!agent.reviewed || cut) return;
    agent.review = `review:${event.id}`;
    chat.put(agent.review, "review", reviewItem(data));
    chat.waiting.add(agent.review);
    if (chat.live) chat.announce("A reply waits for your review.");
  },
  "generation.failed"(chat, data, event) {
    const agent = chat.agent(data.agent);
    const item = agent.open ?? chat.openReply(data.agent, event.id);
    Object.assign(agent, { open: null, early: [] });
    chat.change(item.key, { open: false, text: "", drafting: "", status: "", failed: data.message });
    chat.spend(data.usage);
  },
  "reply.reviewed"(chat, data, event) {
    const words = { accept: "The reply was accepted.", edit: "The reply was edited.", again: "Asked again." };
    const text = words[/** @type {"accept"} */ (data.verdict)];
    chat.put(event.id, "note", { agent: data.agent, text: data.remark ? `${text} ${data.remark}` : text });
    chat.closeReview(data.agent, data.verdict);
    if (data.verdict !== "edit") return;
    const said = prose(data);
    chat.agent(data.agent).said = said;
    chat.put(`edited:${event.id}`, "reply", { agent: data.agent, text: said, reasoning: "", open: false });
    for (const action of data.actions ?? []) {
      const key = `action:${action.id}`;
      const fields = { ...actionItem(action), agent: data.agent, edited: true };
      if (chat.byKey.has(key)) chat.change(key, fields);
      else chat.put(key, "action", fields);
    }
  },
  "action.judged"(chat, data) {
    const key = `action:${data.action}`;
    const { reason = "", digest = "" } = data;
    chat.change(key, { reason, digest, state: data.verdict === "ask" ? "asked" : "proposed" });
    if (data.verdict !== "ask") return;
    chat.waiting.add(key);
    if (chat.live) chat.announce(`Permission is needed: ${chat.byKey.get(key)?.data.capability}.`);
  },
  "action.answered"(chat, data) {
    const key = `action:${data.action}`;
    const item = chat.byKey.get(key);
    if (item?.data.state !== "asked") return; // the first answer counts
    if (data.digest && data.digest !== item.data.digest) return; // an answer to another question
    chat.waiting.delete(key);
    const fields = { state: data.allow ? "allowed" : "denied", denial: data.reason ?? "" };
    chat.change(key, data.arguments ? { ...fields, arguments: data.arguments, edited: true } : fields);
  },
  "action.started"(chat, data, event) {
    chat.waiting.delete(`action:${data.action}`);
    chat.change(`action:${data.action}`, { state: "running", started: event.time });
  },
  "action.progress"(chat, data) {
    chat.change(`action:${data.action}`, { progress: data.text });
  },
  "action.finished"(chat, data, event) {
    const key = `action:${data.action}`;
    chat.waiting.delete(key);
    const started = chat.byKey.get(key)?.data.started;
    const took = started ? event.time - started : 0;
    chat.change(key, { state: data.outcome.state, outcome: data.outcome, took, output: "", progress: "" });
  },
  "dialogue.summarised"(chat, data, event) {
    chat.spend(data.usage);
    chat.put(event.id, "note", { agent: data.agent, text: "The older part of the conversation was summarised." });
  },
  "question.asked"(chat, data) {
    const key = `question:${data.key}`;
    chat.put(key, "question", { agent: data.agent, key: data.key, text: data.question, secret: data.secret === true, answer: null });
    if (data.agent.includes("/")) return; // its caller is asked, not the person
    chat.waiting.add(key);
    if (chat.live) chat.announce(`Textor asks: ${data.question}`);
  },
  "question.answered"(chat, data) {
    chat.waiting.delete(`question:${data.key}`);
    chat.change(`question:${data.key}`, { answer: data.text });
  },
  "agent.controlled"(chat, data, event) {
    const ending = data.level === "stop" || data.level === "kill";
    let changed = false;
    for (const [name, agent] of chat.agents) {
      if (name !== data.agent && !name.startsWith(`${data.agent}/`)) continue;
      if (ending && !agent.running) continue; // nothing to stop
      if (agent.level === "kill" || (agent.level === "stop" && data.level !== "kill")) continue;
      changed ||= agent.level !== data.level;
      agent.level = data.level;
    }
    if (!changed) return;
    const words = {
      run: "Goes on.",
      pause: "Paused.",
      stop: "Stops as soon as what is running is done.",
      kill: "Stopped at once.",
    };
    const text = words[/** @type {"run"} */ (data.level)];
    chat.put(event.id, "note", { agent: data.agent, text });
  },
  "turn.ended"(chat, data, event) {
    const agent = chat.agent(data.agent);
    if (agent.open) chat.change(agent.open.key, { open: false, status: "", drafting: "" });
    if (agent.review) chat.closeReview(data.agent, "ended");
    const text = (data.text ?? "").trim();
    if (text && text !== agent.said.trim() && data.reason !== "failed") {
      chat.put(`reply:${event.id}`, "reply", { agent: data.agent, text, reasoning: "", open: false });
    }
    const level = agent.level === "pause" ? "pause" : "run";
    Object.assign(agent, { running: false, open: null, early: [], said: "", level });
    const { reason, detail = "" } = data;
    if (endWords(reason, detail)) chat.put(event.id, "end", { agent: data.agent, reason, detail });
    if (!chat.live) return;
    chat.listed();
    chat.announce(reason === "replied" ? `Reply: ${text.slice(0, 300)}` : endWords(reason, detail));
  },
};

/** Words for the limits of a turn, a session or an agent. @type {Record<string, string>} */
const LIMITS = {
  iterations: "the number of steps for one message is used up",
  tokens: "the tokens are used up",
  money: "the money is used up",
  seconds: "the time is used up",
  loop: "it did the same thing over and over",
};

/** The typed end of a turn in kind words; "" where there is nothing to say. @param {string} reason @param {string} detail */
export function endWords(reason, detail) {
  switch (reason) {
    case "replied":
      return detail && `Note: ${detail}.`;
    case "asked":
      return "";
    case "limit":
      return `Ended early: ${LIMITS[detail] ?? detail}. What was achieved so far is kept; write on to continue.`;
    case "stopped":
      return "Stopped. Write on whenever you like.";
    case "failed":
      return `This did not work: ${detail || "no reason was given"}`;
    default:
      return `The turn ended: ${reason} ${detail}`;
  }
}
