// Drawing by hand: what is dragged on the paper becomes an action of the app, like those of the AI.
import { act, edit, onState } from "/static/live.js";

const SVG = "http://www.w3.org/2000/svg";
const paper = document.getElementById("paper");
const words = document.getElementById("words");
const word = document.getElementById("word");
const remove = document.getElementById("delete");
let state = null;
let chosen = "";
let drag = null;

const ATTRIBUTES = {
  line: (s) => ["line", { x1: s.x1, y1: s.y1, x2: s.x2, y2: s.y2, "stroke-linecap": "round" }],
  rectangle: (s) => ["rect", { x: s.x, y: s.y, width: s.width, height: s.height }],
  circle: (s) => ["circle", { cx: s.x, cy: s.y, r: s.radius }],
  text: (s) => ["text", { x: s.x, y: s.y, "font-size": s.size }],
};

function element(shape) {
  const [tag, attributes] = ATTRIBUTES[shape.kind](shape);
  const made = document.createElementNS(SVG, tag);
  const look = shape.kind === "text"
    ? { fill: shape.stroke }
    : { stroke: shape.stroke, fill: shape.fill, "stroke-width": shape.thickness };
  for (const [name, value] of Object.entries({ ...attributes, ...look })) made.setAttribute(name, value);
  if (shape.kind === "text") made.textContent = shape.text;
  if (shape.id) {
    made.dataset.id = shape.id;
    made.setAttribute("aria-label", shape.id);
    made.setAttribute("pointer-events", "all");
    if (shape.id === chosen) made.classList.add("chosen");
  }
  return made;
}

function render() {
  paper.replaceChildren(...state.shapes.map(element));
  if (drag?.preview) paper.append(element(drag.preview));
  const { tool, stroke, fill, thickness } = state.window;
  paper.classList.toggle("drawing", tool !== "select");
  for (const button of document.querySelectorAll("[data-tool]")) {
    button.setAttribute("aria-checked", String(button.dataset.tool === tool));
  }
  const shape = state.shapes.find((one) => one.id === chosen);
  if (!shape) chosen = "";
  remove.disabled = !shape;
  document.getElementById("stroke").value = (shape ?? state.window).stroke;
  const inside = (shape ?? state.window).fill;
  document.getElementById("filled").checked = inside !== "none";
  if (inside !== "none") document.getElementById("fill").value = inside;
  document.getElementById("thickness").value = (shape ?? state.window).thickness;
  document.getElementById("list").replaceChildren(...state.shapes.map((one) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.className = "quiet";
    button.textContent = one.kind === "text" ? `${one.id}: ${one.text}` : one.id;
    if (one.id === chosen) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(one.id));
    item.append(button);
    return item;
  }));
}

function choose(id) {
  chosen = id;
  render();
}

function point(event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(paper.getScreenCTM().inverse());
  return { x: Math.round(at.x), y: Math.round(at.y) };
}

function preview(kind, from, to) {
  const { stroke, fill, thickness } = state.window;
  const look = { kind, id: "", stroke, fill: kind === "line" ? "none" : fill, thickness };
  if (kind === "line") return { ...look, x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  if (kind === "circle") return { ...look, x: from.x, y: from.y, radius: Math.hypot(to.x - from.x, to.y - from.y) };
  return { ...look, x: Math.min(from.x, to.x), y: Math.min(from.y, to.y), width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y) };
}

paper.addEventListener("pointerdown", (event) => {
  const from = point(event);
  const { tool } = state.window;
  if (tool === "text") return ask(event, from);
  const id = event.target.dataset?.id ?? "";
  if (tool === "select") choose(id);
  if (tool === "select" && !id) return null;
  drag = { tool, id, from, to: from, preview: null };
  paper.setPointerCapture(event.pointerId);
  return null;
});

paper.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.to = point(event);
  if (drag.tool === "select") {
    paper.querySelector(`[data-id="${CSS.escape(drag.id)}"]`)
      ?.setAttribute("transform", `translate(${drag.to.x - drag.from.x} ${drag.to.y - drag.from.y})`);
  } else {
    drag.preview = preview(drag.tool, drag.from, drag.to);
    render();
  }
});

paper.addEventListener("pointerup", async () => {
  if (!drag) return;
  const { tool, id, from, to } = drag;
  drag = null;
  if (from.x === to.x && from.y === to.y) { render(); return; }
  if (tool === "select") await act("shift", { id, x: to.x - from.x, y: to.y - from.y });
  else await act("put", { kind: tool, x1: from.x, y1: from.y, x2: to.x, y2: to.y });
});

paper.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const far = event.shiftKey ? 10 : 1;
  if (!chosen) return;
  if (steps[event.key]) {
    event.preventDefault();
    act("shift", { id: chosen, x: steps[event.key][0] * far, y: steps[event.key][1] * far });
  } else if (event.key === "Delete" || event.key === "Backspace") act("delete", { shape: chosen });
});

/** The little form beside the place where a text shall stand. */
function ask(event, at) {
  event.preventDefault();
  const box = paper.closest("main").getBoundingClientRect();
  words.style.left = `${event.clientX - box.left}px`;
  words.style.top = `${event.clientY - box.top + paper.closest("main").scrollTop}px`;
  words.hidden = false;
  words.at = at;
  word.value = "";
  word.focus();
}

words.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { x, y } = words.at;
  words.hidden = true;
  if (word.value.trim()) await act("put", { kind: "text", x1: x, y1: y, x2: x, y2: y, text: word.value });
});
words.addEventListener("keydown", (event) => { if (event.key === "Escape") words.hidden = true; });

document.getElementById("tools").addEventListener("click", (event) => {
  if (event.target.dataset.tool) edit("window.tool", event.target.dataset.tool);
});

remove.addEventListener("click", () => act("delete", { shape: chosen }));

/** A choice of look holds for the chosen shape, else for what is drawn next. */
function look(name, value) {
  if (chosen) act("paint", { id: chosen, [name]: value });
  else edit(`window.${name}`, value);
}

const filled = document.getElementById("filled");
const inside = document.getElementById("fill");
document.getElementById("stroke").addEventListener("change", (event) => look("stroke", event.target.value));
inside.addEventListener("change", () => look("fill", inside.value));
filled.addEventListener("change", () => look("fill", filled.checked ? inside.value : "none"));
document.getElementById("thickness").addEventListener("change", (event) => look("thickness", Number(event.target.value) || 2));

onState((next) => {
  state = next;
  render();
});
