// @ts-check
/** Which part of the page the address names: `#plan`, `#plan=ID`, `#apps`; else the sessions. */
import { signal } from "./lib.js";

function read() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (fragment.has("plan")) return { part: "plan", id: fragment.get("plan") ?? "" };
  return { part: fragment.has("apps") ? "apps" : "", id: "" };
}

export const place = signal(read());

addEventListener("hashchange", () => {
  const now = read();
  const before = place.peek();
  if (now.part !== before.part || now.id !== before.id) place.value = now;
});
