// @ts-check
/** Apps: what is registered and running, and the programs that wait for a person's yes. */
import { html, sentence, signal, useEffect, useState } from "./lib.js";
import { call, token } from "./net.js";

/** @type {import("../vendor/signals.js").Signal<AppList>} */
export const apps = signal({ apps: [], pending: [], profile: "", box: [] });

const LOOK = 15_000; // milliseconds between two looks while the page is seen

export async function refreshApps() {
  if (!token.peek() || document.hidden) return;
  try {
    apps.value = await call("GET", "/api/apps");
  } catch {
    // the banner says when the connection is lost
  }
}

addEventListener("focus", refreshApps);
setInterval(refreshApps, LOOK);
refreshApps();

/** One line above everything, while a program waits. */
export function WaitingApps() {
  const names = apps.value.pending.map((p) => p.title);
  if (!names.length) return null;
  return html`<p class="banner app-banner" role="status">
    <span>${names.join(", ")} ${names.length === 1 ? "wants" : "want"} to register with Textor.</span>
    <a href="#apps">Look at it</a>
  </p>`;
}

export function AppsPage() {
  const [problem, setProblem] = useState("");
  useEffect(() => {
    refreshApps();
  }, []);
  /** @param {string} path @param {unknown} body @param {string} [method] */
  const tell = async (path, body, method = "POST") => {
    setProblem("");
    try {
      await call(method, path, body);
    } catch (error) {
      setProblem(sentence(error));
    }
    await refreshApps();
  };
  const list = apps.value;
  return html`<div class="scroller plan-scroller" tabindex="0" role="region" aria-label="Apps">
    <div class="items">
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${list.pending.map((p) => html`<${Pending} key=${p.class} waits=${p} tell=${tell} />`)}
      ${!list.apps.length && html`<p class="lead">No app is installed.</p>`}
      ${list.apps.map((app) => html`<${App} key=${app.class} app=${app} tell=${tell} />`)}
      ${list.box.length > 0 && html`<${Box} names=${list.box} tell=${tell} />`}
    </div>
  </div>`;
}

/** @typedef {(path: string, body: unknown, method?: string) => Promise<void>} Tell */

/** The programs that come with Textor. @param {{names: string[], tell: Tell}} props */
function Box({ names, tell }) {
  const [busy, setBusy] = useState("");
  /** @param {string} app */
  const install = async (app) => {
    setBusy(app);
    await tell("/api/apps/install", { app });
    setBusy("");
  };
  return html`<section class="action" aria-label="In the box">
    <p class="why">These come with Textor:</p>
    <div class="buttons">
      ${names.map(
        (name) => html`<button key=${name} type="button" disabled=${busy !== ""} onClick=${() => install(name)}>
          ${busy === name ? "Installing" : "Install"} ${name}
        </button>`,
      )}
    </div>
  </section>`;
}

/** @param {{waits: PendingApp, tell: Tell}} props */
function Pending({ waits, tell }) {
  /** @param {boolean} allow */
  const decide = (allow) => tell(`/api/apps/pending/${encodeURIComponent(waits.class)}`, { allow });
  return html`<article class="action is-asked" aria-label=${`${waits.title} waits`}>
    <header><span class="chip chip-asked">waits for you</span> <strong>${waits.title}</strong></header>
    <p class="why">This program would be started when you or an agent ask for it:</p>
    <pre class="text">${waits.program.join(" ") || "(no program was named)"}</pre>
    <ul class="phrases">
      ${waits.capabilities.map((c, i) => html`<li key=${i}><code>${c.phrase}</code> <span class="why">${c.purpose}</span></li>`)}
    </ul>
    ${waits.examples.length > 0 &&
    html`<details><summary>${waits.examples.length} examples that a model would be shown</summary>
      ${waits.examples.map((x, i) => html`<pre key=${i} class="text">${x.question}${"\n"}${x.answers.join("\n")}</pre>`)}
    </details>`}
    ${waits.conflict && html`<p class="problem">${waits.conflict}.</p>`}
    <div class="buttons">
      <button type="button" class="primary" disabled=${!!waits.conflict} onClick=${() => decide(true)}>Let it register</button>
      <button type="button" onClick=${() => decide(false)}>Refuse</button>
    </div>
  </article>`;
}

/** @param {{app: AppInfo, tell: Tell}} props */
function App({ app, tell }) {
  return html`<article class="action" aria-label=${app.title}>
    <header>${app.icon && html`<img class="app-icon" src=${`data:image/svg+xml,${encodeURIComponent(app.icon)}`} alt="" />`}
      <strong>${app.title}</strong> <span class="facts">${app.version}</span></header>
    <p class="why">${app.purpose}</p>
    ${app.instances.map(
      (i) => html`<div key=${i.id} class="buttons instance">
        <span class="chip chip-done">runs</span> <code>${i.id}</code>
        <span class="why">port ${i.port}${i.chosen ? ", gets the calls" : ""}</span>
        <a href=${i.address} target="_blank" rel="noopener" aria-label=${`Show ${i.id}`}>Show</a>
        <button type="button" class="quiet" onClick=${() => tell("/api/apps/point", { app: i.id })}>Use this one</button>
        <button type="button" class="quiet" onClick=${() => tell("/api/apps/stop", { app: i.id })}>End</button>
      </div>`,
    )}
    <details><summary>${app.capabilities.length} capabilities</summary>
      <ul class="phrases">
        ${app.capabilities.map((c) => html`<li key=${c.name}><code>${c.phrase}</code> <span class="why">${c.purpose}</span></li>`)}
      </ul>
    </details>
    <div class="buttons">
      <button type="button" onClick=${() => tell("/api/apps/start", { app: app.class })}>Open a window</button>
      <button type="button" class="quiet" aria-label=${`Remove ${app.title}`}
        onClick=${() => tell(`/capability/${encodeURIComponent(app.class)}`, undefined, "DELETE")}>Remove</button>
    </div>
  </article>`;
}
