// @ts-check
/** The agents of a session: what each is doing, and a person's hand on them; and the session's limits. */
import { count, html, sentence, useState } from "./lib.js";
import { tell } from "./state.js";

/** @param {import("./chat.js").Chat} chat @param {string} name */
function doing(chat, name) {
  const agent = chat.agent(name);
  if (agent.level !== "run") return { pause: "paused", stop: "stopping", kill: "ending" }[agent.level];
  return agent.running ? "at work" : "at rest";
}

/**
 * @param {{chat: import("./chat.js").Chat, speak: (agent: string) => void}} props
 *   `speak`: from now on what is written goes to this agent.
 */
export function Agents({ chat, speak }) {
  chat.changed.value; // drawn again when anything of the session changes
  const [problem, setProblem] = useState("");
  const [shown, show] = useState(false);
  const names = [...chat.agents.keys()].sort((a, b) => (a.split("/") < b.split("/") ? -1 : 1));
  if (names.length < 2) return null;
  const busy = names.filter((name) => chat.agent(name).running).length;
  /** @param {string} agent @param {string} level */
  const control = async (agent, level) => {
    setProblem("");
    await tell({ kind: "control", agent, level }).catch((error) => setProblem(sentence(error)));
  };
  return html`<details class="agents" open=${shown} onToggle=${(/** @type {any} */ e) => show(e.currentTarget.open)}>
    <summary>${names.length} agents${busy ? `, ${busy} at work` : ""}</summary>
    <ul aria-label="Agents">
      ${names.map((name) => html`<${Row} key=${name} chat=${chat} name=${name} control=${control}
        speak=${() => {
          show(false);
          speak(name);
        }} />`)}
    </ul>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  </details>`;
}

/**
 * @param {{chat: import("./chat.js").Chat, name: string, speak: () => void,
 *   control: (agent: string, level: string) => void}} props
 */
function Row({ chat, name, speak, control }) {
  const { type, running, level } = chat.agent(name);
  const path = name.split("/");
  /** @param {string} words @param {() => void} act */
  const button = (words, act) =>
    html`<button type="button" class="quiet" aria-label="${words}: ${name}" onClick=${act}>${words}</button>`;
  return html`<li style=${{ paddingLeft: `${(path.length - 1) * 1.1}rem` }}>
    <span class="who" title=${name}>${path.at(-1)} <span class="facts">${type} · ${doing(chat, name)}</span></span>
    <span class="hand">
      ${button("Speak to", speak)}
      ${level === "pause" ? button("Go on", () => control(name, "run")) : button("Pause", () => control(name, "pause"))}
      ${running && (level === "stop" ? button("Stop now", () => control(name, "kill")) : button("Stop", () => control(name, "stop")))}
    </span>
  </li>`;
}

/** What a limit is called, and how much of it is used. @type {[string, string, (u: import("./chat.js").Chat["usage"], chat: import("./chat.js").Chat) => string][]} */
const LIMITS = [
  ["tokens", "Tokens of this session", (u) => `${count(u.input + u.output)} used`],
  ["money", "US dollars of this session", (u) => (u.unpriced ? "price unknown" : `${u.cost.toFixed(4)} used`)],
  ["agents", "Agents of this session", (_, chat) => `${chat.agents.size} there`],
  ["iterations", "Steps for each message", () => ""],
  ["seconds", "Seconds for each message", () => ""],
];

/** The limits of a session, and setting them. @param {{chat: import("./chat.js").Chat, close: () => void}} props */
export function SessionLimits({ chat, close }) {
  chat.changed.value;
  const [problem, setProblem] = useState("");
  /** @param {any} event */
  const set = async (event) => {
    event.preventDefault();
    /** @type {Record<string, number>} */
    const limits = { ...chat.limits };
    for (const [name] of LIMITS) {
      const value = event.currentTarget.elements[name].value.trim();
      if (value) limits[name] = Number(value);
      else delete limits[name];
    }
    try {
      await tell({ kind: "limits", limits });
      close();
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  return html`<form class="limits" aria-label="Limits" onSubmit=${set}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Escape" && close()}>
    ${LIMITS.map(
      ([name, words, used]) => html`<label key=${name}>${words}
        <input name=${name} type="number" min="0" step=${name === "money" ? "any" : "1"} placeholder="no limit"
          value=${chat.limits[name] ?? ""} /> <span class="facts">${used(chat.usage, chat)}</span></label>`,
    )}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p class="buttons"><button type="submit" class="primary">Set</button>
      <button type="button" onClick=${close}>Close</button></p>
  </form>`;
}
