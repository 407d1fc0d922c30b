// @ts-check
/** The page: the list of sessions at the left, the open one beside it. */
import { Agents, SessionLimits } from "./agents.js";
import { AppsPage, WaitingApps } from "./apps.js";
import { Composer } from "./composer.js";
import { count, html, newSessionId, render, sentence, useRef, useState } from "./lib.js";
import { link, token, useToken } from "./net.js";
import { place } from "./places.js";
import { PlanPage } from "./plan.js";
import { agents, chat, create, models, post, sessions, spoken, start, tell } from "./state.js";
import { Conversation } from "./view_chat.js";

/** Signals tell components apart by what they read, so this one draws when the token changes. */
function App() {
  return html`${token.value ? html`<${Frame} />` : html`<${Locked} />`}
    <div class="unseen" role="status" aria-live="polite">${spoken.value}</div>`;
}

function Frame() {
  const [menu, setMenu] = useState(false);
  const open = chat.value;
  return html`<div class=${menu ? "frame menu-open" : "frame"}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Escape" && setMenu(false)}>
    <${Sidebar} close=${() => setMenu(false)} />
    ${menu && html`<div class="shade" onClick=${() => setMenu(false)}></div>`}
    <main>
      <${Header} key=${open?.id ?? ""} open=${open} menu=${menu} toggle=${() => setMenu(!menu)} />
      <${Banner} />
      <${WaitingApps} />
      <${Part} open=${open} />
    </main>
  </div>`;
}

/** So many sessions are found by looking. */
const FEW = 5;

/** What the address names. @param {{open: import("./chat.js").Chat | null}} props */
function Part({ open }) {
  const { part, id } = place.value;
  if (part === "plan") return html`<${PlanPage} id=${id} />`;
  if (part === "apps") return html`<${AppsPage} />`;
  return open ? html`<${Open} key=${open.id} open=${open} />` : html`<${NewChat} />`;
}

/** @param {number} seconds since 1970 */
function when(seconds) {
  const date = new Date(seconds * 1000);
  const today = new Date().toDateString() === date.toDateString();
  return today
    ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })
    : date.toLocaleDateString([], { day: "numeric", month: "short" });
}

/** A plan is a session that has a view of its own. @param {string} id */
function addressOf(id) {
  return `#${id.startsWith("plan-") ? "plan" : "s"}=${encodeURIComponent(id)}`;
}

/** @param {{close: () => void}} props */
function Sidebar({ close }) {
  const id = chat.value?.id ?? "";
  const part = place.value.part;
  const [words, search] = useState("");
  const wanted = words.toLowerCase().split(/\s+/);
  const found = sessions.value.filter((s) => wanted.every((word) => (s.title || "Untitled").toLowerCase().includes(word)));
  return html`<nav class="sidebar" id="sidebar" aria-label="Sessions">
    <p class="brand"><img src="icon.svg" alt="" width="22" height="22" /> Textor</p>
    <a class="new" href="#" onClick=${close} aria-current=${id || part ? undefined : "page"}>New chat</a>
    <p class="places">
      <a href="#plan" onClick=${close} aria-current=${part === "plan" ? "page" : undefined}>Plan</a>
      <a href="#apps" onClick=${close} aria-current=${part === "apps" ? "page" : undefined}>Apps</a>
    </p>
    ${sessions.value.length > FEW &&
    html`<input type="search" class="search" aria-label="Search the sessions" placeholder="Search"
      value=${words} onInput=${(/** @type {any} */ event) => search(event.currentTarget.value)} />`}
    <ul>
      ${found.map(
        (s) => html`<li key=${s.id}>
          <a href=${addressOf(s.id)} onClick=${close} aria-current=${s.id === id ? "page" : undefined}>
            <span class="title">${s.title || "Untitled"}</span>
            ${s.status === "runnable" && html`<span class="busy" role="img" aria-label="at work">●</span>`}
            <span class="when">${when(s.updated)}</span>
          </a>
        </li>`,
      )}
    </ul>
  </nav>`;
}

/** @param {{open: import("./chat.js").Chat | null, menu: boolean, toggle: () => void}} props */
function Header({ open, menu, toggle }) {
  open?.changed.value; // drawn again when anything of the session changes
  const names = { plan: "Plan", apps: "Apps" };
  const named = names[/** @type {"plan"} */ (place.value.part)];
  const title = named ?? (open ? sessions.value.find((s) => s.id === open.id)?.title || open.meta.title || "Chat" : "New chat");
  return html`<header class="top">
    <button type="button" class="quiet burger" aria-label="Sessions" aria-controls="sidebar" aria-expanded=${menu}
      onClick=${toggle}>☰</button>
    <h1>${title}</h1>
    ${open && html`<${Counters} open=${open} /><${ModelOfChat} open=${open} />`}
  </header>`;
}

/** @param {{open: import("./chat.js").Chat}} props */
function Counters({ open }) {
  open.changed.value;
  const [shown, show] = useState(false);
  const u = open.usage;
  const about = u.estimated ? "≈ " : "";
  const cost = u.unpriced ? "price unknown" : u.cost ? `$${u.cost.toFixed(u.cost < 0.1 ? 4 : 2)}` : "free";
  const cached = u.cached ? `, ${count(u.cached)} of them cached` : "";
  const title = `${about}${count(u.input)} tokens read${cached}; ${count(u.output)} written; ${cost}`;
  const used = u.input || u.output ? `${about}${count(u.input + u.output)} tokens · ${cost}` : "Limits";
  return html`<button type="button" class="quiet counters" title="${title}; press to set limits" aria-expanded=${shown}
      aria-label="Used so far: ${title}" onClick=${() => show(!shown)}>${used}</button>
    ${shown && html`<${SessionLimits} chat=${open} close=${() => show(false)} />`}`;
}

/** @param {{open: import("./chat.js").Chat}} props */
function ModelOfChat({ open }) {
  open.changed.value;
  const [problem, setProblem] = useState("");
  const model = open.agents.get("main")?.model ?? "";
  if (!model) return null;
  const others = models.value.models.filter((m) => m.id !== model && m.available !== false);
  /** @param {any} event */
  const change = async (event) => {
    setProblem("");
    await tell({ kind: "model", model: event.target.value }).catch((error) => setProblem(sentence(error)));
  };
  return html`<span class="pick-model">
    <select aria-label="Model of this chat" value=${model} onChange=${change} title=${problem || model}>
      <option value=${model}>${model}</option>
      ${others.map((m) => html`<option key=${m.id} value=${m.id}>${m.id}</option>`)}
    </select>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
  </span>`;
}

function Banner() {
  const open = chat.value;
  const fault = open?.error.value;
  return html`${link.value === "lost" &&
    html`<p class="banner" role="alert">The connection to Textor is lost. Trying again…</p>`}
    ${fault && html`<p class="banner" role="alert">${fault}</p>`}`;
}

/** @param {{model: string}} props */
function SmallModel({ model }) {
  const [hidden, setHidden] = useState(sessionStorage.getItem("textor.small") === "hidden");
  if (hidden || !model.startsWith("embedded:")) return null;
  const hide = () => {
    sessionStorage.setItem("textor.small", "hidden");
    setHidden(true);
  };
  return html`<p class="hint">
    <span>This is the small model in the box: it needs no key, and it makes mistakes. To connect a bigger
      one, write for example <code>default = "ollama:qwen3"</code> under <code>[models]</code> in${" "}
      <code>${models.value.config || "the configuration file"}</code> and start Textor again.</span>
    <button type="button" class="quiet" onClick=${hide}>Hide</button>
  </p>`;
}

/** @param {{open: import("./chat.js").Chat}} props */
function Open({ open }) {
  return html`<${Conversation} chat=${open} />
    <div class="foot">
      <${Waiting} open=${open} />
      <${Foot} open=${open} />
    </div>`;
}

/** Says that something further up waits for the person. @param {{open: import("./chat.js").Chat}} props */
function Waiting({ open }) {
  open.changed.value;
  const keys = [...open.waiting];
  if (!keys.length) return null;
  const show = () => {
    const element = document.getElementById(keys[0]);
    element?.scrollIntoView({ block: "center" });
    /** @type {any} */ (element?.querySelector("button.primary, input"))?.focus();
  };
  const text = keys.length === 1 ? "Textor waits for your decision." : `${keys.length} decisions wait for you.`;
  return html`<p class="waiting"><span>${text}</span>
    <button type="button" class="quiet" onClick=${show}>Show</button></p>`;
}

/** @param {{open: import("./chat.js").Chat}} props */
function Foot({ open }) {
  open.changed.value;
  const main = open.agents.get("main");
  const running = open.running;
  const stopping = [...open.agents.values()].some((agent) => agent.level === "stop" || agent.level === "kill");
  const [to, speak] = useState("main");
  const label = to !== "main" ? `Message to ${to}` : running ? "Add something" : "Message Textor";
  return html`
    <${Agents} chat=${open} speak=${(/** @type {string} */ agent) => {
      speak(agent);
      /** @type {any} */ (document.querySelector(".composer textarea"))?.focus();
    }} />
    ${to !== "main" &&
    html`<p class="hint"><span>You speak to <strong>${to}</strong>.</span>
      <button type="button" class="quiet" onClick=${() => speak("main")}>Speak to Textor again</button></p>`}
    ${main?.level === "pause" &&
    html`<p class="waiting"><span>Paused.</span>
      <button type="button" class="quiet" onClick=${() => tell({ kind: "control", level: "run" })}>Go on</button></p>`}
    <${SmallModel} model=${main?.model ?? ""} />
    <${Composer} place=${open.id} label=${label}
      send=${(/** @type {string} */ text) => post(text, to)} running=${running} stopping=${stopping}
      pause=${main?.level === "run" && !stopping ? () => tell({ kind: "control", level: "pause" }) : null}
      stop=${(/** @type {boolean} */ kill) => tell({ kind: "control", level: kill ? "kill" : "stop" })} />`;
}

const EXAMPLES = ["What files are here?", "What time is it?", "Read README.md and tell me what it is about."];

function NewChat() {
  const [agent, setAgent] = useState("");
  const [model, setModel] = useState("");
  const [text, setText] = useState("");
  const id = useRef({ text: "", id: "" });
  const known = models.value;
  /** @param {string} text */
  const send = (text) => {
    const whole = JSON.stringify([text, agent, model]);
    if (id.current.text !== whole) id.current = { text: whole, id: newSessionId() };
    return create({ id: id.current.id, text, agent, model });
  };
  /** @param {(value: string) => void} set */
  const chosen = (set) => (/** @type {any} */ event) => set(event.target.value);
  return html`<div class="welcome">
      <h2>What shall be done?</h2>
      <p class="lead">Textor works in your folder, shows each action before and after it happens, and asks before
        anything is changed.</p>
      <ul class="examples" aria-label="Examples">
        ${EXAMPLES.map((e) => html`<li key=${e}><button type="button" onClick=${() => setText(e)}>${e}</button></li>`)}
      </ul>
    </div>
    <div class="foot">
      <${SmallModel} model=${model || known.default} />
      <div class="choices">
        <label>Agent <select value=${agent} onChange=${chosen(setAgent)}>
          <option value="">${agents.value.default ? `usual (${agents.value.default})` : "usual"}</option>
          ${agents.value.agents.map((a) => html`<option key=${a.type} value=${a.type} title=${a.purpose}>${a.type}</option>`)}
        </select></label>
        <label>Model <select value=${model} onChange=${chosen(setModel)}>
          <option value="">${known.default ? `usual (${known.default})` : "usual"}</option>
          ${known.models.map(
            (m) => html`<option key=${m.id} value=${m.id} disabled=${m.available === false} title=${m.note}>
              ${m.id}${m.available === false && m.note ? ` (${m.note})` : ""}</option>`,
          )}
        </select></label>
      </div>
      <${Composer} key=${text} place="new" label="Message Textor" given=${text} send=${send} />
    </div>`;
}

/** Shown without a token, or when it is no longer right. */
function Locked() {
  const field = useRef(/** @type {any} */ (null));
  /** @param {Event} event */
  const enter = (event) => {
    event.preventDefault();
    const given = field.current.value.trim();
    if (given) useToken(new URLSearchParams(given.split("#")[1] ?? "").get("token") ?? given);
  };
  return html`<main class="locked">
    <h1><img src="icon.svg" alt="" width="28" height="28" /> Textor</h1>
    <p>This page needs the key that belongs to your Textor. Open the address which Textor printed when it started, or
      paste it here.</p>
    <form class="buttons" onSubmit=${enter}>
      <input ref=${field} type="password" autocomplete="off" aria-label="Address or key" placeholder="http://…/#token=…" />
      <button type="submit" class="primary">Open</button>
    </form>
  </main>`;
}

start();
render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
