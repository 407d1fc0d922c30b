// @ts-check
/** Where a person writes. What was written is never lost: it stays until the server has it. */
import { html, sentence, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";

/** @param {string} place */
const draftKey = (place) => `textor.draft.${place}`;

/**
 * @param {{place: string, label: string, send: (text: string) => Promise<unknown>,
 *   given?: string, running?: boolean, stopping?: boolean, stop?: (kill: boolean) => Promise<unknown>,
 *   pause?: (() => Promise<unknown>) | null}} props
 *   `place` names the draft (a session, or "new"); `given` is a text to begin with.
 */
export function Composer({ place, label, send, given = "", running = false, stopping = false, stop, pause }) {
  const [text, setText] = useState(() => given || (sessionStorage.getItem(draftKey(place)) ?? ""));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const field = useRef(/** @type {any} */ (null));

  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current.focus(); // no keyboard pops up on a phone
  }, []);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(field.current.scrollHeight + 2, innerHeight * 0.4)}px`;
  }, [text]);

  /** @param {string} next */
  const write = (next) => {
    setText(next);
    sessionStorage.setItem(draftKey(place), next);
  };
  const submit = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    setProblem("");
    try {
      await send(text);
      sessionStorage.removeItem(draftKey(place));
      setText((now) => (now === text ? "" : now));
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  /** @param {(() => Promise<unknown> | undefined)} act */
  const press = async (act) => {
    setProblem("");
    await act()?.catch((error) => setProblem(sentence(error)));
  };

  return html`<form class="composer" aria-label="Message" onSubmit=${(/** @type {Event} */ e) => {
    e.preventDefault();
    submit();
  }}>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="box">
      <textarea ref=${field} rows="1" value=${text} placeholder=${label} aria-label=${label}
        onInput=${(/** @type {any} */ e) => write(e.target.value)} onKeyDown=${key}></textarea>
      ${running &&
      pause &&
      html`<button type="button" onClick=${() => press(() => pause())} title="Begin nothing new until you say so">Pause</button>`}
      ${running &&
      html`<button type="button" class="stop" onClick=${() => press(() => stop?.(stopping))}
        title=${stopping ? "End what is running now" : "Stop as soon as what is running is done"}>
        ${stopping ? "Stop now" : "Stop"}</button>`}
      <button type="submit" class="primary" disabled=${busy || !text.trim()}>Send</button>
    </div>
  </form>`;
}
