// @ts-check
/** A reply that waits: a person accepts it, edits its text or its calls, or asks again. */
import { html, sentence, useRef, useState } from "./lib.js";
import { command } from "./net.js";

/** @param {{item: Item, session: string, many: boolean}} props */
export function Review({ item, session, many }) {
  const r = item.view.value;
  const [mode, setMode] = useState(/** @type {"choose" | "edit" | "again"} */ ("choose"));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {any} */ (null));
  const calls = useRef(/** @type {any} */ (null));
  if (r.verdict) return null;

  /** @param {string} verdict @param {Record<string, unknown>} [more] */
  const answer = async (verdict, more = {}) => {
    setBusy(true);
    setProblem("");
    try {
      await command(session, { kind: "review", agent: r.agent, verdict, ...more });
    } catch (error) {
      setProblem(sentence(error));
      setBusy(false);
    }
  };
  const edited = () => {
    let list = [];
    try {
      list = calls.current ? JSON.parse(calls.current.value) : [];
    } catch (error) {
      return setProblem(`This is not valid JSON: ${sentence(error)}.`);
    }
    if (!Array.isArray(list)) return setProblem("The actions must be one JSON list: [ … ].");
    return answer("edit", { draft: { text: field.current.value, calls: list } });
  };
  /** @param {"choose" | "edit" | "again"} next */
  const turn = (next) => {
    setMode(next);
    setProblem("");
    requestAnimationFrame(() => field.current?.focus());
  };
  /** @param {Event} event */
  const again = (event) => {
    event.preventDefault();
    answer("again", { remark: field.current.value });
  };

  return html`<article class="question" id=${item.key} aria-label="Review of a reply">
    ${many && html`<p class="agent">${r.agent}</p>`}
    <p><strong>This reply waits for you.</strong> Nothing of it runs before.</p>
    ${mode === "choose" &&
    html`<div class="buttons">
      <button type="button" class="primary" disabled=${busy} onClick=${() => answer("accept")}>Accept</button>
      <button type="button" disabled=${busy} onClick=${() => turn("edit")}>Edit</button>
      <button type="button" disabled=${busy} onClick=${() => turn("again")}>Ask again</button>
    </div>`}
    ${mode === "edit" &&
    html`<textarea ref=${field} class="json" rows="6" aria-label="The reply" defaultValue=${r.text}></textarea>
      ${r.native &&
      html`<textarea ref=${calls} class="json" rows="6" spellcheck="false" aria-label="Its actions as JSON"
        defaultValue=${JSON.stringify(r.calls, null, 2)}></textarea>`}
      <div class="buttons">
        <button type="button" class="primary" disabled=${busy} onClick=${edited}>Go on as edited</button>
        <button type="button" class="quiet" onClick=${() => turn("choose")}>Back</button>
      </div>`}
    ${mode === "again" &&
    html`<form class="buttons" onSubmit=${again}>
      <input ref=${field} type="text" aria-label="Your remark" placeholder="What should be different?" />
      <button type="submit" disabled=${busy}>Ask again</button>
      <button type="button" class="quiet" onClick=${() => turn("choose")}>Back</button>
    </form>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  </article>`;
}
