// The table of numbers. What is typed is sent as text, and the app reads it as a number or says why not.
import { act, onState } from "/static/live.js";

const grid = document.getElementById("grid");
let extra = 0; // columns that are begun and have no numbers yet
let shown = "";

const cell = (value, label) => {
  const input = document.createElement("input");
  input.value = value;
  input.setAttribute("aria-label", label);
  input.autocomplete = "off";
  return input;
};

function build(state) {
  const names = [...state.series.map((s) => s.name), ...Array(extra).fill("")];
  if (names.length === 0) names.push("");
  const rows = state.labels.map((label, i) => [label, ...names.map((_, n) => state.series[n]?.values[i] ?? "")]);
  rows.push(["", ...names.map(() => "")]);
  const head = document.createElement("tr");
  const corner = document.createElement("th");
  corner.className = "corner";
  corner.textContent = "Label";
  head.append(corner, ...names.map((name, n) => {
    const th = document.createElement("th");
    th.scope = "col";
    const input = cell(name, `Name of series ${n + 1}`);
    input.placeholder = names.length > 1 ? `Series ${n + 1}` : "Values";
    th.append(input);
    return th;
  }));
  const body = rows.map((row, i) => {
    const tr = document.createElement("tr");
    tr.append(...row.map((value, n) => {
      const td = document.createElement("td");
      const fresh = i === rows.length - 1;
      const label = n === 0 ? (fresh ? "New label" : `Label ${i + 1}`) : `${names[n - 1] || "Value"} of ${row[0] || "the new label"}`;
      td.append(cell(value, label));
      return td;
    }));
    return tr;
  });
  return [head, ...body];
}

/** The new table; a cell that is being edited keeps its text and the focus. */
function render(state) {
  const now = JSON.stringify([state.labels, state.series, extra]);
  if (now === shown) return;
  shown = now;
  const active = grid.contains(document.activeElement) ? document.activeElement : null;
  const place = active && [active.closest("tr").rowIndex, active.parentElement.cellIndex];
  const typed = active && active.value !== active.defaultShown ? active.value : null;
  grid.replaceChildren(...build(state));
  for (const input of grid.querySelectorAll("input")) input.defaultShown = input.value;
  const again = place && grid.rows[place[0]]?.cells[place[1]]?.firstChild;
  if (!again) return;
  if (typed !== null) again.value = typed;
  again.focus();
}

async function send() {
  const [head, ...rows] = [...grid.rows].map((row) => [...row.querySelectorAll("input")].map((input) => input.value));
  const answer = await act("table", { names: head, rows });
  if (answer) extra = 0;
  return answer;
}

grid.addEventListener("change", async (event) => {
  const input = event.target;
  const row = input.closest("tr");
  const isNew = row === grid.rows[grid.rows.length - 1] && row.rowIndex > 0;
  const filled = [...row.querySelectorAll("input")].every((one) => one.value.trim());
  if (isNew && !filled) return; // a row that is being begun waits for its number
  input.defaultShown = input.value;
  const answer = await send();
  if (!answer) input.setAttribute("aria-invalid", "true");
});

grid.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  const input = event.target;
  const below = grid.rows[input.closest("tr").rowIndex + 1];
  const next = below?.cells[input.parentElement.cellIndex]?.firstChild;
  if (next) next.focus();
  else input.blur();
});

let latest = null;
document.getElementById("more").addEventListener("click", () => {
  extra += 1;
  render(latest);
  [...grid.rows[0].querySelectorAll("input")].at(-1).focus();
});

onState((state) => {
  latest = state;
  render(state);
});
