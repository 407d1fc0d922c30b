// @ts-check
/** What the page holds: the lists, the open session, the connection. */
import { Chat } from "./chat.js";
import { effect, newId, signal } from "./lib.js";
import { ask, command, Connection, sessionInAddress, token } from "./net.js";

/** @type {import("../vendor/signals.js").Signal<SessionInfo[]>} */
export const sessions = signal([]);
/** @type {import("../vendor/signals.js").Signal<{models: ModelInfo[], default: string, config: string}>} */
export const models = signal({ models: [], default: "", config: "" });
/** @type {import("../vendor/signals.js").Signal<{agents: AgentType[], default: string}>} */
export const agents = signal({ agents: [], default: "" });
/** The open session; null on the page for a new one. @type {import("../vendor/signals.js").Signal<Chat | null>} */
export const chat = signal(null);
/** What a screen reader is told. */
export const spoken = signal("");
/** The session that the server's frames are about, "" until it says so. */
let current = "";

/** @param {Frame} frame */
function receive(frame) {
  const open = chat.peek();
  if (frame.type === "session") {
    current = frame.session;
    if (open?.id === current) open.joined(frame.head);
    return;
  }
  if (!open) return;
  if (frame.type === "error") open.error.value = frame.error;
  else if (current !== open.id) return; // still of the session that was open before
  else if (frame.type === "event") open.apply(frame.event);
  else open.delta(frame);
}

const connection = new Connection(receive, () => {
  const open = chat.peek();
  current = "";
  return { session: open?.id ?? "", after: open?.seq ?? 0 };
});

/** Open what the address names. */
function open() {
  const id = sessionInAddress();
  if ((chat.peek()?.id ?? "") === id) return;
  const next = id ? new Chat(id) : null;
  if (next) {
    next.announce = (text) => (spoken.value = text);
    next.listed = refresh;
  }
  chat.value = next;
  connection.follow();
}

let pending = 0;

/** Fetch the list of sessions, soon; several wishes make one request. */
export function refresh() {
  clearTimeout(pending);
  pending = setTimeout(async () => {
    try {
      sessions.value = (await ask("sessions")).sessions;
    } catch {
      // the banner says that the connection is lost; the list comes when it is back
    }
  }, 150);
}

async function choices() {
  [models.value, agents.value] = await Promise.all([ask("models"), ask("agents")]);
}

/**
 * Make a session with its first message and open it. The caller keeps `id`, which becomes the
 * session's, for its next try: so a lost answer does not make two.
 * @param {{id: string, text: string, agent: string, model: string}} wanted
 */
export async function create(wanted) {
  const { session } = await ask("sessions", wanted);
  location.hash = `s=${encodeURIComponent(session)}`;
  refresh();
}

/** @param {Record<string, unknown>} body */
export function tell(body) {
  const open = chat.peek();
  return open ? command(open.id, body) : Promise.resolve();
}

/** The id of the message that is being sent, kept while the same text is tried again. */
let sending = { text: "", agent: "", id: "" };

/** @param {string} text @param {string} agent */
export async function post(text, agent = "main") {
  if (sending.text !== text || sending.agent !== agent) sending = { text, agent, id: newId() };
  await tell({ kind: "post", text, agent, id: sending.id });
  sending = { text: "", agent: "", id: "" };
}

export function start() {
  addEventListener("hashchange", open);
  addEventListener("focus", refresh);
  open();
  effect(() => {
    if (!token.value) return;
    connection.connect();
    refresh();
    choices().catch(() => {});
  });
}
