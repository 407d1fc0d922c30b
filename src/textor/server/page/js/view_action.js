// @ts-check
/** An action as a card: what is asked for, how it stands, what came of it; and the gate. */
import { duration, html, sentence, useRef, useState } from "./lib.js";
import { command } from "./net.js";

const LONG = 1200; // characters of a text that are shown before the rest is folded
const LINES = 14;

/** Words for the states; the word is the chip, so that colour is not needed to tell them apart. */
const WORDS = {
  proposed: "planned",
  asked: "asks you",
  allowed: "allowed",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  cancelled: "cancelled",
  unknown: "outcome unknown",
  dropped: "replaced in the review",
};

/** A text that may be big: its head, and the rest on demand. @param {{text: string, label: string}} props */
export function Folded({ text, label }) {
  const [whole, setWhole] = useState(false);
  const lines = text.split("\n");
  const big = text.length > LONG || lines.length > LINES;
  const head = big && !whole ? lines.slice(0, LINES).join("\n").slice(0, LONG) : text;
  const size = `${text.length.toLocaleString("en-GB")} characters`;
  return html`<pre class="text" tabindex="0" aria-label=${label}>${head}${big && !whole ? "\n…" : ""}</pre>
    ${big &&
    html`<button type="button" class="quiet more" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>
      ${whole ? "Show less" : `Show all (${size})`}
    </button>`}`;
}

/** @param {{arguments: Record<string, any>}} props */
function Arguments(props) {
  const entries = Object.entries(props.arguments ?? {});
  if (!entries.length) return null;
  return html`<dl class="arguments">
    ${entries.map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
      const short = text.length <= 90 && !text.includes("\n");
      return html`<div key=${name} class=${short ? "" : "tall"}>
        <dt>${name}</dt>
        <dd>${short ? html`<code>${text || '""'}</code>` : html`<${Folded} text=${text} label=${name} />`}</dd>
      </div>`;
    })}
  </dl>`;
}

/** @param {{item: Item, session: string, many: boolean}} props */
export function Action({ item, session, many }) {
  const a = item.view.value;
  const outcome = /** @type {Outcome | null} */ (a.outcome);
  const bad = a.state === "done" && outcome?.exit_status; // it ran to its end, and says that it did not do it
  const word = bad ? `exit status ${bad}` : (WORDS[/** @type {"done"} */ (a.state)] ?? a.state);
  const name = a.capability || "an action that was not understood";
  const facts = [
    a.took ? duration(a.took) : "",
    !bad && outcome?.exit_status ? `exit status ${outcome.exit_status}` : "",
    a.edited ? "edited by you" : "",
  ].filter(Boolean);
  return html`<article class="action is-${a.state}" id=${item.key} aria-label="Action ${name}: ${word}">
    <header>
      <span class="chip chip-${bad ? "failed" : a.state}">${word}</span>
      <code class="name">${name}</code>
      ${many && html`<span class="agent">${a.agent}</span>`}
      <span class="facts">${facts.join(" · ")}</span>
    </header>
    <${Arguments} arguments=${a.arguments} />
    ${a.state === "asked" && html`<${Gate} action=${a} session=${session} />`}
    ${a.state === "denied" && !outcome && a.denial && html`<p class="why">Reason: ${a.denial}</p>`}
    ${a.progress && html`<p class="why">${a.progress}</p>`}
    ${a.output && html`<pre class="text live" aria-label="Output so far">${a.output}</pre>`}
    ${a.fault && !outcome && html`<p class="why">${a.fault}</p>`}
    ${outcome && html`<${Result} outcome=${outcome} />`}
  </article>`;
}

/** @param {{outcome: Outcome}} props */
function Result({ outcome }) {
  const text = outcome.text ?? "";
  const calm = outcome.state === "done";
  const values = (outcome.values ?? []).filter((v) => v.name || v.text == null);
  const lines = text.trim().split("\n");
  const first = lines[0].slice(0, 110);
  return html`
    ${text.trim() &&
    (calm
      ? html`<details class="outcome">
          <summary><span>Outcome</span> <span class="first">${first}</span>
            ${lines.length > 1 && html`<span class="facts">${lines.length} lines</span>`}</summary>
          <${Folded} text=${text} label="Outcome" />
        </details>`
      : lines.length === 1
        ? html`<p class="why">${text}</p>`
        : html`<${Folded} text=${text} label="Outcome" />`)}
    ${outcome.state === "unknown" &&
    html`<p class="why">Textor was interrupted while this ran. It may have happened or not; please look.</p>`}
    ${values.length > 0 &&
    html`<p class="why">With it: ${values.map((v) => `${v.name || "a value"} (${v.media_type})`).join(", ")}</p>`}
  `;
}

/** @param {string} text */
export function asSentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1).replace(/\.?$/, ".") : "";
}

/** What a person decides at the gate. @param {{action: any, session: string}} props */
function Gate({ action, session }) {
  const [mode, setMode] = useState(/** @type {"choose" | "deny" | "edit"} */ ("choose"));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {any} */ (null));

  /** @param {boolean} allow @param {Record<string, unknown>} [more] */
  const answer = async (allow, more = {}) => {
    setBusy(true);
    setProblem("");
    try {
      await command(session, { kind: "answer", action: action.id, digest: action.digest, allow, ...more });
    } catch (error) {
      setProblem(sentence(error));
      setBusy(false);
    }
  };
  const allowEdited = () => {
    let edited;
    try {
      edited = JSON.parse(field.current.value);
    } catch (error) {
      return setProblem(`This is not valid JSON: ${sentence(error)}.`);
    }
    if (typeof edited !== "object" || edited === null || Array.isArray(edited)) {
      return setProblem("The arguments must be one JSON object: { … }.");
    }
    return answer(true, { arguments: edited });
  };
  /** @param {"choose" | "deny" | "edit"} next */
  const turn = (next) => {
    setMode(next);
    setProblem("");
    requestAnimationFrame(() => field.current?.focus());
  };
  /** @param {Event} event */
  const deny = (event) => {
    event.preventDefault();
    answer(false, { reason: field.current.value });
  };

  return html`<div class="gate" role="group" aria-label="Permission for ${action.capability}">
    <p><strong>May Textor do this?</strong> ${asSentence(action.reason)}</p>
    ${mode === "choose" &&
    html`<div class="buttons">
      <button type="button" class="primary" disabled=${busy} onClick=${() => answer(true)}>Allow</button>
      <button type="button" disabled=${busy} onClick=${() => answer(false)}>Deny</button>
      <span class="rest">
        <button type="button" class="quiet" disabled=${busy} title="The same call is not asked about again here"
          onClick=${() => answer(true, { scope: "session" })}>Allow for this session</button>
        <button type="button" class="quiet" disabled=${busy} onClick=${() => turn("deny")}>Deny with a reason</button>
        <button type="button" class="quiet" disabled=${busy} onClick=${() => turn("edit")}>Edit arguments</button>
      </span>
    </div>`}
    ${mode === "deny" &&
    html`<form class="buttons" onSubmit=${deny}>
      <input ref=${field} type="text" aria-label="Reason for denying" placeholder="Why not? The model reads this." />
      <button type="submit" disabled=${busy}>Deny</button>
      <button type="button" class="quiet" onClick=${() => turn("choose")}>Back</button>
    </form>`}
    ${mode === "edit" &&
    html`<textarea ref=${field} class="json" rows="6" spellcheck="false" aria-label="Arguments as JSON"
        defaultValue=${JSON.stringify(action.arguments ?? {}, null, 2)}></textarea>
      <div class="buttons">
        <button type="button" class="primary" disabled=${busy} onClick=${allowEdited}>Allow as edited</button>
        <button type="button" class="quiet" onClick=${() => turn("choose")}>Back</button>
      </div>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  </div>`;
}
