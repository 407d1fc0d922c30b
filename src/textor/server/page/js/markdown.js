// @ts-check
/**
 * Markdown as it grows. While a reply streams, only its last, unfinished block is parsed again.
 *
 * HTML in a reply is shown as it was written and never taken as HTML: models write tags that mean
 * something in their dialect. Pictures become links, so that nothing is fetched because a model
 * wrote it. What remains goes through DOMPurify all the same.
 */
import { html, signal, useEffect, useRef, useState } from "./lib.js";
import { Marked } from "../vendor/marked.js";
import DOMPurify from "../vendor/purify.js";

const HIGHLIGHT_UP_TO = 30_000; // characters of code that are coloured
const SAFE = {
  ALLOWED_TAGS: (
    "p br hr h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "start", "align", "target", "rel"],
};

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  breaks: true, // results and short lines keep their lines
  renderer: {
    /** @param {{text: string}} token */
    html({ text }) {
      return /^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escaped(text);
    },
    /** @param {{href: string, text: string}} token */
    image({ href, text }) {
      return `<a href="${escaped(href)}" target="_blank" rel="noopener noreferrer">${escaped(text || href)}</a>`;
    },
    /** @type {(this: any, token: any) => string} */
    link({ href, title, tokens }) {
      const hint = title ? ` title="${escaped(title)}"` : "";
      const inner = this.parser.parseInline(tokens);
      return `<a href="${escaped(href)}"${hint} target="_blank" rel="noopener noreferrer">${inner}</a>`;
    },
    /** @type {(this: any, token: any) => string} */
    heading({ depth, tokens }) {
      const level = Math.min(6, depth + 2); // the page has its own first two
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    /** @param {{checked: boolean}} token */
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

/** @typedef {{code: string, lang: string} | {html: string}} Block */

/** @param {import("../vendor/marked.js").Token} token @returns {Block} */
function block(token) {
  if (token.type === "code") return { code: token.text, lang: (token.lang ?? "").split(/\s/)[0] };
  return { html: DOMPurify.sanitize(marked.parser([token]), SAFE) };
}

/** A text that grows at its end, as blocks; those that are finished are not touched again. */
export class Growing {
  constructor() {
    /** @type {Block[]} */
    this.finished = [];
    this.taken = 0; // characters that the finished blocks stand for
    this.length = 0;
  }

  /** @param {string} text @param {boolean} open whether more will come @returns {Block[]} */
  blocks(text, open) {
    if (!open || text.length < this.length) Object.assign(this, new Growing());
    this.length = text.length;
    const tokens = marked.lexer(text.slice(this.taken));
    if (!open) return tokens.filter((t) => t.type !== "space").map(block);
    const last = tokens.findLastIndex((t) => t.type !== "space");
    for (const token of tokens.slice(0, Math.max(0, last))) {
      this.taken += token.raw.length;
      if (token.type !== "space") this.finished.push(block(token));
    }
    return last < 0 ? this.finished : [...this.finished, block(tokens[last])];
  }
}

/** The highlighter, fetched with the first piece of code. @type {import("../vendor/signals.js").Signal<any>} */
const highlighter = signal(null);
let asked = false;

function wantHighlighter() {
  if (asked) return;
  asked = true;
  import("../vendor/highlight.js").then((module) => {
    highlighter.value = module.default;
  });
}

/** @param {{code: string, lang: string, open: boolean}} props */
export function Code({ code, lang, open }) {
  const [copied, setCopied] = useState(false);
  const hljs = highlighter.value;
  const wanted = !open && lang && code.length < HIGHLIGHT_UP_TO;
  useEffect(() => {
    if (wanted) wantHighlighter();
  }, [wanted]);
  const coloured = wanted && hljs?.getLanguage(lang);
  const inner = coloured ? hljs.highlight(code, { language: lang, ignoreIllegals: true }).value : "";
  const copy = () => {
    navigator.clipboard?.writeText(code).then(() => setCopied(true));
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<div class="code">
    <div class="code-bar">
      <span>${lang || "text"}</span>
      <button type="button" class="quiet" onClick=${copy}>${copied ? "Copied" : "Copy"}</button>
    </div>
    <pre tabindex="0">${
      coloured
        ? html`<code key="coloured" dangerouslySetInnerHTML=${{ __html: inner }}></code>`
        : html`<code key="plain">${code}</code>`
    }</pre>
  </div>`;
}

/** @param {{text: string, open: boolean}} props */
export function Markdown({ text, open }) {
  const growing = useRef(/** @type {Growing | null} */ (null));
  growing.current ??= new Growing();
  const blocks = growing.current.blocks(text, open);
  return html`<div class="markdown">
    ${blocks.map((b, i) =>
      "code" in b
        ? html`<${Code} key=${i} code=${b.code} lang=${b.lang} open=${open && i === blocks.length - 1} />`
        : html`<${Rendered} key=${i} html=${b.html} />`,
    )}
  </div>`;
}

/** @param {{html: string}} props */
function Rendered(props) {
  return html`<div dangerouslySetInnerHTML=${{ __html: props.html }}></div>`;
}
