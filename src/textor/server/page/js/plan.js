// @ts-check
/** Plans: a request becomes a list of actions, which a person corrects and runs line by line. */
import { html, sentence, useEffect, useRef, useState } from "./lib.js";
import { call } from "./net.js";
import { refresh } from "./state.js";
import { apps, refreshApps } from "./apps.js";
import { Folded, asSentence } from "./view_action.js";
import { Values } from "./view_values.js";

/** What a line's state is called; the word is the chip, so that colour is not needed. */
const MEANS = {
  match: "certain",
  weak: "not certain",
  ambiguous: "two meanings",
  fail: "no such action",
  note: "no action",
};

const EXAMPLES = [
  "Chart the population of the continents in millions.",
  "Write an email to anna@example.org that I am late.",
  "Put the dentist into my calendar, tomorrow at ten.",
];

/** @param {{id: string}} props */
export function PlanPage({ id }) {
  return id ? html`<${Open} key=${id} id=${id} />` : html`<${Begin} />`;
}

function Begin() {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [plans, setPlans] = useState(/** @type {{id: string, title: string}[]} */ ([]));
  const [profiles, setProfiles] = useState(/** @type {{name: string, apps: string[]}[]} */ ([]));
  const [profile, setProfile] = useState("");
  useEffect(() => {
    call("GET", "/v1/plans").then((told) => setPlans(told.plans)).catch(() => {});
    call("GET", "/api/profiles")
      .then((told) => {
        setProfiles(told.profiles);
        setProfile(told.active);
      })
      .catch(() => {});
  }, []);
  /** @param {Event} event */
  const begin = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      const { id } = await call("POST", "/v1/plans", { request: text, profile });
      location.hash = `plan=${encodeURIComponent(id)}`;
      refresh();
    } catch (error) {
      setProblem(sentence(error));
      setBusy(false);
    }
  };
  return html`<div class="welcome">
    <h2>What shall your apps do?</h2>
    <p class="lead">Textor writes a list of actions. You see it, change it, and run it, all or line by line.</p>
    <ul class="examples" aria-label="Examples">
      ${EXAMPLES.map((e) => html`<li key=${e}><button type="button" onClick=${() => setText(e)}>${e}</button></li>`)}
    </ul>
    ${plans.length > 0 &&
    html`<section class="earlier-plans" aria-label="Earlier plans">
      <h3>Earlier plans</h3>
      <ul>${plans.slice(0, 8).map((p) => html`<li key=${p.id}><a href="#plan=${encodeURIComponent(p.id)}">${p.title}</a></li>`)}</ul>
    </section>`}
  </div>
  <div class="foot">
    <form class="composer" aria-label="Request" onSubmit=${begin}>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="box">
        <textarea rows="2" value=${text} aria-label="What shall your apps do?" placeholder="What shall your apps do?"
          onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea>
        ${profiles.length > 0 &&
        html`<select aria-label="The apps to use" value=${profile} onChange=${(/** @type {any} */ e) => setProfile(e.target.value)}>
          <option value="">All apps</option>
          ${profiles.map((p) => html`<option key=${p.name} value=${p.name}>${p.name} (${p.apps.join(", ")})</option>`)}
        </select>`}
        <button type="submit" class="primary" disabled=${busy || !text.trim()}>Make a plan</button>
      </div>
    </form>
  </div>`;
}

/** @param {{id: string}} props */
function Open({ id }) {
  const [plan, setPlan] = useState(/** @type {Plan | null} */ (null));
  const [problem, setProblem] = useState("");
  const [mode, setMode] = useState(/** @type {"lines" | "text" | "again"} */ ("lines"));
  const path = `/v1/plans/${encodeURIComponent(id)}`;

  useEffect(() => {
    const ended = new AbortController();
    follow(path, ended.signal, setPlan, setProblem);
    return () => ended.abort();
  }, [id]);

  /** @param {string} method @param {string} more @param {unknown} body */
  const tell = async (method, more, body) => {
    setProblem("");
    try {
      setPlan(await call(method, path + more, body));
      return true;
    } catch (error) {
      setProblem(sentence(error));
      return false;
    }
  };
  if (!plan) return html`<p class="welcome">${problem || "…"}</p>`;
  const anew = async () => {
    try {
      const { id } = await call("POST", "/v1/plans", { request: plan.request, profile: plan.profile });
      location.hash = `plan=${encodeURIComponent(id)}`;
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  const running = plan.status === "running";
  const open = plan.lines.filter((l) => l.state !== "note" && !l.skip && !["done", "unknown"].includes(l.run.state));
  return html`<div class="scroller plan-scroller" tabindex="0" role="region" aria-label="Plan">
      <div class="items">
        <article class="message mine"><p class="plain">${plan.request}</p></article>
        ${plan.status === "generating" &&
        html`<p class="thinking"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> The list is being written</p>`}
        ${plan.status === "failed" && html`<p class="end end-failed">There is no list: ${plan.detail}</p>`}
        ${mode === "text"
          ? html`<${AsText} plan=${plan} tell=${tell} close=${() => setMode("lines")} />`
          : html`<ol class="lines" aria-label="Actions">
              ${plan.lines.map((line) => html`<${Row} key=${line.id} plan=${id} line=${line} busy=${running} tell=${tell} />`)}
            </ol>`}
        ${plan.halted && html`<p class="end end-limit">It stopped: ${plan.halted}</p>`}
      </div>
    </div>
    <div class="foot">
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${mode === "again" && html`<${Again} tell=${tell} close=${() => setMode("lines")} />`}
      <div class="buttons plan-buttons">
        ${running
          ? html`<button type="button" class="stop" onClick=${() => tell("POST", "/stop", {})}>Stop</button>`
          : html`<button type="button" class="primary" disabled=${!open.length || plan.status !== "ready"}
              onClick=${() => tell("POST", "/run", {})}>${open.length < plan.lines.length && plan.reviewed ? "Run the rest" : "Run all"}</button>`}
        <button type="button" disabled=${running} onClick=${() => setMode(mode === "text" ? "lines" : "text")}>Edit as text</button>
        ${!plan.reviewed &&
        plan.status === "ready" &&
        html`<button type="button" onClick=${() => setMode("again")}>Ask again</button>`}
        ${plan.status === "failed" && html`<button type="button" onClick=${anew}>Try again</button>`}
        <a class="new-plan" href="#plan">New plan</a>
      </div>
    </div>`;
}

/**
 * Keep the plan up to date: each answer comes when something has happened.
 * @param {string} path @param {AbortSignal} signal
 * @param {(plan: Plan) => void} setPlan @param {(problem: string) => void} setProblem
 */
async function follow(path, signal, setPlan, setProblem) {
  let after = "";
  while (!signal.aborted) {
    try {
      const plan = await call("GET", path + after, undefined, signal);
      if (signal.aborted) return;
      setPlan(plan);
      after = `?after=${plan.seq}`;
    } catch (error) {
      if (signal.aborted) return;
      setProblem(sentence(error));
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

/** @typedef {(method: string, more: string, body: unknown) => Promise<boolean>} Tell */

/** @param {{plan: string, line: PlanLine, busy: boolean, tell: Tell}} props */
function Row({ plan, line, busy, tell }) {
  const window = apps.value.apps.flatMap((app) => app.instances).find((i) => i.id === line.run.window);
  useEffect(() => {
    if (line.run.window) refreshApps();
  }, [line.run.window]);
  const [editing, setEditing] = useState(false);
  const field = useRef(/** @type {any} */ (null));
  const path = `/lines/${line.id}`;
  const state = line.run.state || (line.ready ? "match" : line.state);
  const word = line.run.state || (line.choice && line.ready ? "chosen" : MEANS[/** @type {"match"} */ (line.state)]);
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    if (await tell("PUT", path, { text: field.current.value })) setEditing(false);
  };
  return html`<li class=${`line is-${state}${line.skip ? " is-skipped" : ""}`}>
    <header>
      ${editing
        ? html`<form class="buttons line-edit" onSubmit=${save}>
            <input ref=${field} type="text" aria-label="The line" defaultValue=${line.text} />
            <button type="submit" class="primary">Save</button>
            <button type="button" class="quiet" onClick=${() => setEditing(false)}>Back</button>
          </form>`
        : html`<${Marked} text=${line.text} />
            ${line.skip && !line.run.state
              ? html`<span class="chip">left out</span>`
              : html`<span class="chip chip-${state}">${word}</span>`}`}
    </header>
    ${line.state !== "note" && !line.skip && !editing && html`<${Meaning} line=${line} busy=${busy} tell=${tell} />`}
    ${line.run.state === "asked" && html`<${Asked} line=${line} tell=${tell} />`}
    ${line.run.text &&
    (line.run.text.length > 300
      ? html`<${Folded} text=${line.run.text} label="Outcome" />`
      : html`<p class="why plain">${line.run.text}</p>`)}
    ${line.run.values.length > 0 &&
    html`<${Values} values=${line.run.values} path=${`/v1/plans/${encodeURIComponent(plan)}/values/`} />`}
    ${window && html`<p class="why"><a href=${window.address} target="_blank" rel="noopener">Show its window</a></p>`}
    <div class="buttons line-buttons">
      ${line.state !== "note" &&
      html`<button type="button" class="quiet" disabled=${busy || !line.ready} aria-label=${`Run ${line.text}`}
          onClick=${() => tell("POST", "/run", { lines: [line.id] })}>${line.run.state ? "Run again" : "Run"}</button>
        <button type="button" class="quiet" disabled=${busy} aria-pressed=${line.skip}
          onClick=${() => tell("PUT", path, { skip: !line.skip })}>${line.skip ? "Take in" : "Leave out"}</button>`}
      <button type="button" class="quiet" disabled=${busy} onClick=${() => setEditing(true)}>Edit</button>
      ${line.run.log.length > 0 &&
      html`<details class="log"><summary>Log</summary>
        <ol>${line.run.log.map((entry, i) => html`<li key=${i}>${new Date(entry.time * 1000).toLocaleTimeString()} ${entry.text}</li>`)}</ol>
      </details>`}
    </div>
  </li>`;
}

/** A line with what stands in its brackets set apart. @param {{text: string}} props */
function Marked({ text }) {
  return html`<code class="line-text">${pieces(text).map((piece, i) =>
    piece.startsWith("[") ? html`<mark key=${i}>${piece}</mark>` : piece,
  )}</code>`;
}

/** A text cut before and behind each outer pair of brackets. @param {string} text */
function pieces(text) {
  const found = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "[" && depth++ === 0) {
      found.push(text.slice(start, at));
      start = at;
    } else if (text[at] === "]" && depth > 0 && --depth === 0) {
      found.push(text.slice(start, at + 1));
      start = at + 1;
    }
  }
  return [...found, text.slice(start)].filter(Boolean);
}

/** What a line means, and what else it may mean. @param {{line: PlanLine, busy: boolean, tell: Tell}} props */
function Meaning({ line, busy, tell }) {
  /** @param {any} event */
  const choose = (event) => tell("PUT", `/lines/${line.id}`, { choice: event.target.value });
  const others = line.candidates.filter((c) => c.capability !== line.capability);
  if (line.ready && line.exact && !line.choice) return null;
  return html`<div class="meaning">
    <p class="why">${line.ready ? html`means <strong>${line.phrase}</strong>` : line.fault}</p>
    ${(others.length > 0 || line.choice) &&
    html`<select aria-label=${`What “${line.text}” means`} disabled=${busy} value=${line.choice} onChange=${choose}>
      <option value="">${line.choice ? "as Textor reads it" : "it means …"}</option>
      ${line.candidates.map(
        (c) => html`<option key=${c.capability} value=${c.capability}>${c.phrase} (${Math.round(c.score * 100)} %)</option>`,
      )}
    </select>`}
  </div>`;
}

/** The gate. @param {{line: PlanLine, tell: Tell}} props */
function Asked({ line, tell }) {
  /** @param {boolean} allow */
  const answer = (allow) => tell("POST", "/answer", { line: line.id, allow });
  return html`<div class="gate" role="group" aria-label=${`Permission for ${line.text}`}>
    <p><strong>May Textor do this?</strong> ${asSentence(line.run.reason)}</p>
    <div class="buttons">
      <button type="button" class="primary" onClick=${() => answer(true)}>Allow</button>
      <button type="button" onClick=${() => answer(false)}>Deny</button>
    </div>
  </div>`;
}

/** @param {{plan: Plan, tell: Tell, close: () => void}} props */
function AsText({ plan, tell, close }) {
  const field = useRef(/** @type {any} */ (null));
  const save = async () => {
    if (await tell("PUT", "", { text: field.current.value })) close();
  };
  return html`<textarea ref=${field} class="json" rows=${Math.max(plan.lines.length + 2, 6)} spellcheck="false"
      aria-label="The list, one action a line" defaultValue=${plan.text}></textarea>
    <div class="buttons">
      <button type="button" class="primary" onClick=${save}>Keep</button>
      <button type="button" class="quiet" onClick=${close}>Back</button>
    </div>
    ${plan.original !== plan.text &&
    html`<details class="reasoning"><summary>As the model wrote it</summary><pre class="text">${plan.original}</pre></details>`}`;
}

/** @param {{tell: Tell, close: () => void}} props */
function Again({ tell, close }) {
  const field = useRef(/** @type {any} */ (null));
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (await tell("POST", "/again", { remark: field.current.value })) close();
  };
  return html`<form class="buttons" onSubmit=${send}>
    <input ref=${field} type="text" aria-label="What should be different?" placeholder="What should be different?" />
    <button type="submit" class="primary">Write it anew</button>
    <button type="button" class="quiet" onClick=${close}>Back</button>
  </form>`;
}
