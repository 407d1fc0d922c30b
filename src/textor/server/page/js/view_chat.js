// @ts-check
/** The conversation: its items in order, the last ones in the document, the end in view. */
import { endWords } from "./chat.js";
import { html, sentence, useRef, useState } from "./lib.js";
import { Markdown } from "./markdown.js";
import { command } from "./net.js";
import { Action, Folded } from "./view_action.js";
import { Review } from "./view_review.js";

const PASTE = 3000; // characters of a message from which on it is folded

/** @param {{chat: import("./chat.js").Chat}} props */
export function Conversation({ chat }) {
  const total = chat.total.value;
  const from = chat.from.value;
  const many = chat.agents.size > 1;
  // In a reversed column the scroll position counts from the end, so the end stays in view.
  /** @param {any} event */
  const scrolled = (event) => {
    chat.atEnd = event.currentTarget.scrollTop > -40;
    if (chat.atEnd && chat.from.peek() < total - 2 * 60) chat.schedule();
  };
  return html`<div class="scroller" onScroll=${scrolled} tabindex="0" role="region" aria-label="Conversation">
    <div class="items" role="log" aria-live="off">
      ${from > 0 &&
      html`<button type="button" class="quiet earlier" onClick=${() => chat.showEarlier()}>
        Show earlier (${from})</button>`}
      ${chat.items.slice(from, Math.max(total, from)).map(
        (item) => html`<${Entry} key=${item.key} item=${item} session=${chat.id} many=${many} />`,
      )}
    </div>
  </div>`;
}

/** @param {{item: Item, session: string, many: boolean}} props */
function Entry(props) {
  switch (props.item.type) {
    case "message":
      return html`<${Message} ...${props} />`;
    case "reply":
      return html`<${Reply} ...${props} />`;
    case "action":
      return html`<${Action} ...${props} />`;
    case "question":
      return html`<${Question} ...${props} />`;
    case "review":
      return html`<${Review} ...${props} />`;
    case "end":
      return html`<${End} ...${props} />`;
    default:
      return html`<${Note} ...${props} />`;
  }
}

/** @param {{item: Item, many: boolean}} props */
function Message({ item }) {
  const m = item.view.value;
  const person = m.sender === "";
  const who = person ? "You" : m.sender;
  const big = m.text.length > PASTE || m.text.split("\n").length > 30;
  return html`<article class=${person ? "message mine" : "message"} aria-label="Message from ${who}">
    ${!person && html`<p class="agent">${m.sender} → ${m.agent}</p>`}
    ${person && m.agent !== "main" && html`<p class="agent">to ${m.agent}</p>`}
    ${big ? html`<${Folded} text=${m.text} label="Message" />` : html`<p class="plain">${m.text}</p>`}
    ${!m.delivered && html`<p class="queued">waits until the next step</p>`}
  </article>`;
}

/** @param {{item: Item, many: boolean}} props */
function Reply({ item, many }) {
  const r = item.view.value;
  const quiet = r.open && !r.text && !r.status && !r.drafting;
  if (!r.open && !r.text && !r.thoughts && !r.reasoning && !r.failed && !r.faults?.length) return null;
  return html`<article class="reply" aria-label="Reply of ${r.agent === "main" ? "Textor" : r.agent}" aria-busy=${r.open}>
    ${many && html`<p class="agent">${r.agent}</p>`}
    ${r.reasoning &&
    html`<details class="reasoning">
      <summary>Reasoning</summary>
      <p class="plain">${r.reasoning}</p>
    </details>`}
    ${r.thoughts && html`<p class="plain thoughts">${r.thoughts}</p>`}
    ${r.text && html`<${Markdown} text=${r.text} open=${r.open} />`}
    ${r.drafting && html`<pre class="text live" aria-label="An action is being written">${r.drafting}</pre>`}
    ${quiet && html`<p class="thinking"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> Thinking</p>`}
    ${r.status && html`<p class="thinking"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> ${r.status}</p>`}
    ${r.cut && html`<p class="why">This reply was cut off.</p>`}
    ${r.faults?.map((/** @type {string} */ f, /** @type {number} */ i) => html`<p key=${i} class="why">Not understood: ${f}</p>`)}
    ${r.failed && html`<p class="problem">${r.failed}</p>`}
  </article>`;
}

/** @param {{item: Item, session: string}} props */
function Question({ item, session }) {
  const q = item.view.value;
  const field = useRef(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await command(session, { kind: "reply", key: q.key, text: field.current.value, secret: q.secret });
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  };
  return html`<article class="question" id=${item.key} aria-label="Question of ${q.agent}">
    <p><strong>${q.agent === "main" ? "Textor asks:" : `${q.agent} asks:`}</strong></p>
    <${Markdown} text=${q.text} open=${false} />
    ${q.answer !== null
      ? html`<p class="plain answer">${q.answer}</p>`
      : !q.agent.includes("/") &&
        html`<form class="buttons" onSubmit=${send}>
          <input ref=${field} type=${q.secret ? "password" : "text"} autocomplete="off" required
            aria-label="Your answer" placeholder=${q.secret ? "Not shown, not kept" : "Your answer"} />
          <button type="submit" class="primary" disabled=${busy}>Answer</button>
        </form>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  </article>`;
}

/** @param {{item: Item, many: boolean}} props */
function Note({ item, many }) {
  const n = item.view.value;
  return html`<p class="note">${many && n.agent && n.agent !== "main" ? `${n.agent}: ` : ""}${n.text}</p>`;
}

/** @param {{item: Item}} props */
function End({ item }) {
  const e = item.view.value;
  const who = e.agent === "main" ? "" : `${e.agent}: `;
  return html`<p class="end end-${e.reason}">${who}${endWords(e.reason, e.detail)}</p>`;
}
