// @ts-check
/** The few library names that the page uses, in one place. */
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export { render } from "../vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";

export const html = htm.bind(h);

/** An id that nobody else makes (`crypto.randomUUID` is missing on plain http of other hosts). */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** An id for a session, as the machine makes them: the time and five letters, easy to read aloud. */
export function newSessionId() {
  const letters = "abcdefghjkmnpqrstuvwxyz23456789";
  const now = new Date();
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  const end = Array.from(crypto.getRandomValues(new Uint32Array(5)), (n) => letters[n % letters.length]);
  return `${day}-${two(now.getHours())}${two(now.getMinutes())}-${end.join("")}`;
}

/** @param {number} n */
export function count(n) {
  return n.toLocaleString("en-GB");
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.05) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return `${Math.round(seconds / 60)} min`;
}

/** @param {unknown} error */
export function sentence(error) {
  return error instanceof Error ? error.message : String(error);
}
