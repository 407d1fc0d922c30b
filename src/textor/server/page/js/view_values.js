// @ts-check
/** What came of an action besides its text: pictures are shown, everything can be saved. */
import { html, sentence, useEffect, useState } from "./lib.js";
import { content } from "./net.js";

const SHOWN = 8_000_000; // bytes of a picture that is shown without being asked for

/** @typedef {{name: string, kind: string, media_type: string, size: number, handle: string}} Given */

/** @param {{values: Given[], path: string}} props `path` is what a handle is put behind */
export function Values({ values, path }) {
  return html`<ul class="values">
    ${values.map((value) => html`<${One} key=${value.handle} value=${value} path=${path + value.handle} />`)}
  </ul>`;
}

/** @param {{value: Given, path: string}} props */
function One({ value, path }) {
  const [address, setAddress] = useState("");
  const [problem, setProblem] = useState("");
  const isShown = value.kind === "image" && value.size <= SHOWN;
  const name = value.name || `a ${value.kind}`;
  useEffect(() => {
    if (isShown) content(path).then(setAddress, (error) => setProblem(sentence(error)));
  }, [path]);
  const save = async () => {
    try {
      const link = document.createElement("a");
      link.href = address || (await content(path));
      link.download = value.name || value.kind;
      link.click();
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  return html`<li>
    ${address && html`<img src=${address} alt=${`${name}, a picture that came of this line`} />`}
    <span class="why">${name} (${value.media_type}, ${size(value.size)})</span>
    <button type="button" class="quiet" aria-label=${`Save ${name}`} onClick=${save}>Save</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
  </li>`;
}

/** @param {number} bytes */
function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
