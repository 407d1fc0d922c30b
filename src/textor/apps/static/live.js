// Binds a page to the document of its app.
//
//   data-bind="title"         shows a value; in a field it is edited too. "rows.0.name"; "." and ".name"
//                             inside a list are its item and a part of it
//   data-list="rows"          holds a <template>, which is repeated for each item
//   data-show="sent"          is hidden while the value is empty; "!sent" the other way round
//   data-do="send"            a button: POST /send. A form: its named fields go along, and are cleared
//   data-args='{"id": ".id"}' what a button sends; texts that begin with "." are read from
//                             the item, or from the document outside of lists
//   data-picture              an <img> that shows the app's picture, again after each change
//   data-documents            is filled with the kept documents
//   data-save="picture.png"   a button: GET /app/picture.png as a file of the person
//   data-undo                 takes back the last change of the AI; hidden while there is none
//
// A field that has the focus is never overwritten. Scripts of a page import `onState`, `act` and `edit`.

const PAUSE = 250; // ms without typing after which an edit is sent
const token = readToken();
const listeners = [];
let snapshot = null;

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return given ?? sessionStorage.getItem("token") ?? "";
}

function ask(path, options = {}) {
  const headers = { "x-textor-by": "person", ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers });
}

/** Call an action as the person; null when it was refused (and the sentence is shown). */
export async function act(route, args = {}, method = "POST") {
  await flush();
  return send(`/${route}`, args, method);
}

async function send(path, args, method = "POST") {
  const query = method === "GET" ? `?${new URLSearchParams(args)}` : "";
  const options = method === "GET" ? {} : {
    method, body: JSON.stringify(args), headers: { "content-type": "application/json" },
  };
  try {
    const answer = await ask(path + query, options);
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error);
    if (method !== "GET") settle();
    return body;
  } catch (error) {
    say(error.message, "bad");
    return null;
  }
}

/** GET something of the app as text. */
export async function text(path) {
  const answer = await ask(path);
  return answer.ok ? answer.text() : "";
}

/** Set one value of the document. */
export const edit = (path, value, base = null) =>
  send("/app/edit", { path, value, base, document: snapshot?.document ?? "" });

/** `listener(state, snapshot)` runs now, when there is a state, and after each change. */
export function onState(listener) {
  listeners.push(listener);
  if (snapshot) listener(snapshot.state, snapshot);
}

/** One sentence at the lower edge; kind "bad" stays until something succeeds. */
export function say(sentence, kind = "", action = null) {
  const box = document.getElementById("say");
  box.replaceChildren(document.createTextNode(sentence));
  box.className = kind;
  if (action) {
    const button = document.createElement("button");
    button.textContent = action.label;
    button.addEventListener("click", () => { box.hidden = true; action.run(); });
    box.append(button);
  }
  box.hidden = false;
  clearTimeout(say.timer);
  if (kind !== "bad") say.timer = setTimeout(() => { box.hidden = true; }, 8000);
}

/** What was wrong has been mended. */
function settle() {
  const box = document.getElementById("say");
  if (box.className === "bad") box.hidden = true;
}

// -- values and places -------------------------------------------------------------------------

export function valueAt(root, path) {
  return path.split(".").reduce((value, step) => (value == null ? undefined : value[step]), root);
}

function fullPath(element, name) {
  if (!name.startsWith(".")) return name;
  const item = element.closest("[data-item]");
  if (!item) return name.slice(1);
  return item.dataset.item + (name === "." ? "" : name);
}

const isField = (element) => element.matches("input, textarea, select");
const isEmpty = (value) => value == null || value === "" || value === false || value.length === 0;

function written(element) {
  if (element.type === "checkbox") return element.checked;
  if (element.type === "number") return element.value === "" ? null : Number(element.value);
  return element.value;
}

function show(element, value) {
  if (!isField(element)) {
    const shown = value == null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    if (element.textContent !== shown) element.textContent = shown;
  } else if (element.type === "checkbox") {
    element.checked = Boolean(value);
  } else if (element.value !== String(value ?? "")) {
    element.value = value ?? "";
  }
}

// -- editing -----------------------------------------------------------------------------------

const waiting = new Map(); // field -> timer
const bases = new WeakMap(); // field -> the text that it was last in step with

function onInput(event) {
  const field = event.target.closest("[data-bind]");
  if (!field || !isField(field)) return;
  clearTimeout(waiting.get(field));
  waiting.set(field, setTimeout(() => post(field), PAUSE));
}

let line = Promise.resolve(); // edits go one after the other, so that the last one typed is the last

function post(field) {
  clearTimeout(waiting.get(field));
  waiting.delete(field);
  line = line.then(async () => {
    // Of a long text the app keeps what was added meanwhile, if it knows what the person began from.
    const base = field.matches("textarea") ? bases.get(field) ?? "" : null;
    const value = written(field);
    bases.set(field, value);
    const answer = await edit(fullPath(field, field.dataset.bind), value, base);
    field.setAttribute("aria-invalid", String(answer === null));
  });
  return line;
}

const flush = () => Promise.all([line, ...[...waiting.keys()].map(post)]);

function onLeave(event) {
  const field = event.target;
  if (!(field instanceof Element) || !field.matches("[data-bind]")) return;
  if (waiting.has(field)) post(field).then(render);
  else setTimeout(render); // what came meanwhile is shown now
}

// -- showing -----------------------------------------------------------------------------------

function render() {
  if (!snapshot) return;
  const { state } = snapshot;
  for (const list of document.querySelectorAll("[data-list]")) renderList(list, state);
  for (const element of document.querySelectorAll("[data-bind]")) {
    const value = valueAt(state, fullPath(element, element.dataset.bind));
    if (isField(element) && (waiting.has(element) || (element === document.activeElement && bases.has(element)))) continue;
    show(element, value);
    if (isField(element)) bases.set(element, written(element));
  }
  for (const element of document.querySelectorAll("[data-show]")) {
    const name = element.dataset.show;
    const path = name.replace("!", "");
    element.hidden = isEmpty(valueAt(state, fullPath(element, path))) !== name.startsWith("!");
  }
  for (const element of document.querySelectorAll("[data-undo]")) element.hidden = !snapshot.undoable;
}

function renderList(list, state) {
  const items = valueAt(state, fullPath(list, list.dataset.list)) ?? [];
  const template = list.querySelector(":scope > template");
  const rows = [...list.children].filter((child) => child !== template);
  for (const row of rows.slice(items.length)) row.remove();
  for (let index = rows.length; index < items.length; index++) {
    const row = template.content.firstElementChild.cloneNode(true);
    row.dataset.item = `${fullPath(list, list.dataset.list)}.${index}`;
    list.append(row);
  }
}

const pictures = new WeakMap();

async function renderPictures() {
  for (const image of document.querySelectorAll("[data-picture]")) {
    const svg = await text("/app/picture.svg");
    if (!svg || pictures.get(image) === svg) continue;
    pictures.set(image, svg);
    image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  }
}

async function renderDocuments() {
  for (const list of document.querySelectorAll("[data-documents]")) {
    const answer = await send("/app/documents", {}, "GET");
    if (!answer) continue;
    list.replaceChildren(...answer.documents.map((saved) => {
      const button = document.createElement("button");
      button.textContent = saved.title || "Untitled";
      button.className = "quiet";
      button.title = new Date(saved.changed * 1000).toLocaleString(); // tells untitled ones apart
      if (saved.id === answer.open) button.setAttribute("aria-current", "true");
      button.addEventListener("click", async () => { await flush(); await send("/app/open", { id: saved.id }); });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }
}

function take(next) {
  if (lost) say("Connected again.");
  lost = false;
  const fresh = !snapshot || snapshot.document !== next.document;
  const before = snapshot;
  snapshot = next;
  if (fresh) document.activeElement?.matches?.("[data-bind]") && document.activeElement.blur();
  render();
  for (const listener of listeners) listener(next.state, next);
  renderPictures();
  renderDocuments();
  const change = next.change;
  if (!fresh && change && change.version !== before.version && change.by === "ai") {
    say(`Textor: ${change.label}`, "", { label: "Undo", run: undo });
  }
}

/** Hand GET /app/NAME to the person as a file. */
async function download(name) {
  await flush();
  const answer = await ask(`/app/${name}`);
  if (!answer.ok) return say((await answer.json()).error, "bad");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = /filename="(.*)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return null;
}

const undo = async () => {
  const answer = await send("/app/undo", {});
  if (answer) say(answer.text);
};

// -- actions -----------------------------------------------------------------------------------

function argumentsOf(element) {
  const args = JSON.parse(element.dataset.args ?? "{}");
  for (const [name, value] of Object.entries(args)) {
    if (typeof value === "string" && value.startsWith(".")) {
      args[name] = valueAt(snapshot.state, fullPath(element, value));
    }
  }
  return args;
}

async function onSubmit(event) {
  const form = event.target.closest("form[data-do]");
  if (!form) return;
  event.preventDefault();
  const answer = await act(form.dataset.do, Object.fromEntries(new FormData(form)));
  if (answer) form.reset();
  if (answer?.text && form.dataset.tell !== undefined) say(answer.text);
}

async function onClick(event) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.undo !== undefined) await undo();
  else if (button.dataset.new !== undefined) { await flush(); await send("/app/new", {}); }
  else if (button.dataset.save) await download(button.dataset.save);
  else if (button.dataset.do) {
    button.disabled = true;
    const answer = await act(button.dataset.do, argumentsOf(button));
    button.disabled = false;
    if (answer?.text && button.dataset.tell !== undefined) say(answer.text);
  }
}

// -- the stream --------------------------------------------------------------------------------

async function follow() {
  for (;;) {
    try {
      const answer = await ask("/app/events");
      if (answer.status === 401) return say("This window needs the address that Textor opened it with.", "bad");
      document.documentElement.dataset.live = "yes";
      await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch { /* the app ended or the line broke: told below */ }
    document.documentElement.dataset.live = "no";
    lost = true;
    say("The app does not answer; trying again.", "bad");
    await new Promise((done) => { setTimeout(done, 1000); });
  }
}

let lost = false;

async function read(reader) {
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) take(JSON.parse(data.slice(6)));
    }
  }
}

function start() {
  const box = document.createElement("div");
  box.id = "say";
  box.hidden = true;
  box.setAttribute("role", "status");
  document.body.append(box);
  document.addEventListener("input", onInput);
  document.addEventListener("change", onInput);
  document.addEventListener("focusout", onLeave);
  document.addEventListener("submit", onSubmit);
  document.addEventListener("click", onClick);
  follow();
}

start();
