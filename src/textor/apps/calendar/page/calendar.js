// Days and hours. Which events fall where is asked of the app; a click takes one into the form.
import { act, edit, onState, say } from "/static/live.js";

const heads = document.getElementById("heads");
const whole = document.getElementById("whole");
const hours = document.getElementById("hours");
const days = document.querySelector(".days");
let latest = null;
let drawn = 0;

const pad = (number) => String(number).padStart(2, "0");
const dayOf = (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
const isoOf = (date) => `${dayOf(date)}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
const plus = (date, count) => new Date(date.getFullYear(), date.getMonth(), date.getDate() + count);
const clock = (iso) => iso.slice(11);
const minutes = (iso) => Number(iso.slice(11, 13)) * 60 + Number(iso.slice(14, 16));

function span(window) {
  const shown = new Date(`${window.shown}T00:00`);
  if (window.view === "day") return [shown, 1];
  return [plus(shown, -((shown.getDay() + 6) % 7)), 7];
}

function make(tag, className = "", text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(event) {
  const time = event.all_day ? "whole day" : `${clock(event.start)} to ${clock(event.end)}`;
  const made = make("button", "event", event.title);
  made.setAttribute("aria-label", `${event.title}, ${event.start.slice(0, 10)}, ${time}`);
  made.title = event.description;
  if (!event.all_day) made.append(make("small", "", `${clock(event.start)} – ${clock(event.end)}`));
  if (event.id === latest.window.id && event.id) made.classList.add("chosen");
  if (event.id) made.addEventListener("click", () => act("choose", { id: event.id, at: event.start }));
  else { made.classList.add("draft"); made.tabIndex = -1; }
  return made;
}

/** Events of one day, those that overlap side by side. */
function place(column, events, day) {
  let group = [];
  let end = -1;
  const finish = () => {
    const lanes = [];
    for (const one of group) {
      let lane = lanes.findIndex((until) => until <= one.from);
      if (lane < 0) lane = lanes.push(0) - 1;
      lanes[lane] = one.until;
      one.lane = lane;
    }
    for (const one of group) {
      const made = button(one.event);
      made.style.top = `calc(${one.from / 60} * var(--hour))`;
      made.style.height = `calc(${Math.max(one.until - one.from, 25) / 60} * var(--hour) - 2px)`;
      made.style.left = `${(one.lane / lanes.length) * 100}%`;
      made.style.width = `calc(${100 / lanes.length}% - 3px)`;
      column.append(made);
    }
    group = [];
  };
  for (const event of events) {
    const from = event.start.slice(0, 10) < day ? 0 : minutes(event.start);
    const until = event.end.slice(0, 10) > day ? 1440 : minutes(event.end);
    if (from >= end) finish();
    group.push({ event, from, until: Math.max(until, from + 25) });
    end = group.length === 1 ? until : Math.max(end, until);
  }
  finish();
}

async function draw(state) {
  const turn = ++drawn;
  const [first, count] = span(state.window);
  const answer = await act("between", { first: isoOf(first), last: isoOf(plus(first, count)) }, "GET");
  if (!answer || turn !== drawn) return;
  const form = state.window;
  const events = [...answer.data];
  if (!form.id && form.start) events.push({ id: "", title: form.title || "New event", description: "", start: form.start, end: form.end || form.start, all_day: form.all_day });
  events.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  const scroll = hours.scrollTop;
  days.style.setProperty("--days", count);
  const today = dayOf(new Date());
  const names = { weekday: "short" };
  heads.replaceChildren(make("div"));
  whole.replaceChildren(make("div", "", "all day"));
  const scale = make("div");
  for (let hour = 1; hour < 24; hour++) {
    const mark = make("span", "", `${pad(hour)}:00`);
    mark.style.top = `calc(${hour} * var(--hour))`;
    scale.append(mark);
  }
  hours.replaceChildren(scale);
  for (let n = 0; n < count; n++) {
    const date = plus(first, n);
    const day = dayOf(date);
    const head = make("div", day === today ? "today" : "", date.toLocaleDateString(undefined, names));
    head.append(make("b", "", String(date.getDate())));
    const top = make("div");
    const column = make("div", day === today ? "today" : "");
    column.dataset.day = day;
    const here = events.filter((e) => e.start.slice(0, 10) <= day && (e.end > `${day}T00:00` || e.start >= `${day}T00:00`));
    top.append(...here.filter((e) => e.all_day && (e.id || e.end.slice(0, 10) >= day)).map(button));
    place(column, here.filter((e) => !e.all_day), day);
    heads.append(head);
    whole.append(top);
    hours.append(column);
  }
  hours.scrollTop = turn === 1 ? hours.scrollHeight * (7.5 / 24) : scroll;
  const last = plus(first, count - 1);
  const options = { day: "numeric", month: "long", year: "numeric" };
  document.getElementById("span").textContent = count === 1
    ? first.toLocaleDateString(undefined, { weekday: "long", ...options })
    : `${first.toLocaleDateString(undefined, { day: "numeric", month: "long" })} – ${last.toLocaleDateString(undefined, options)}`;
}

function showForm(form) {
  const repeat = document.getElementById("repeat");
  repeat.querySelector("[data-own]")?.remove();
  if (![...repeat.options].some((option) => option.value === form.repeat)) {
    const own = make("option", "", form.repeat_told || form.repeat);
    own.value = form.repeat;
    own.dataset.own = "";
    repeat.append(own);
  }
  repeat.value = form.repeat;
  document.getElementById("once").hidden = !form.repeat;
}

onState((state) => {
  latest = state;
  showForm(state.window);
  draw(state);
});

hours.addEventListener("click", (event) => {
  const column = event.target.closest("[data-day]");
  if (!column || event.target !== column) return;
  const half = Math.floor((event.offsetY / column.clientHeight) * 48);
  act("new", { start: `${column.dataset.day}T${pad(half >> 1)}:${half % 2 ? "30" : "00"}` });
});

const go = (date) => edit("window.shown", dayOf(date));
const step = (sign) => { const [first, count] = span(latest.window); go(plus(first, sign * count)); };
document.getElementById("back").addEventListener("click", () => step(-1));
document.getElementById("on").addEventListener("click", () => step(1));
document.getElementById("today").addEventListener("click", () => go(new Date()));

// Moving the beginning takes the end along.
document.getElementById("start").addEventListener("change", (event) => {
  const { start, end } = latest.window;
  if (!event.target.value) return;
  const length = start && end ? new Date(end) - new Date(start) : 30 * 60_000;
  edit("window.end", isoOf(new Date(new Date(event.target.value).getTime() + length)));
});

document.getElementById("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
  const answer = await act("import", { name: file.name, data: btoa(binary) });
  if (answer) say(answer.text);
  event.target.value = "";
});

document.getElementById("export").addEventListener("click", async () => {
  const answer = await act("export");
  if (!answer) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([answer.data.ics], { type: "text/calendar" }));
  link.download = "calendar.ics";
  link.click();
});
