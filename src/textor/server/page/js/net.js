// @ts-check
/**
 * The way to the server: the token, JSON requests, and the one WebSocket of this tab.
 *
 * The token comes in the address's fragment, which browsers send to nobody, and then lives in
 * `sessionStorage`. There are no cookies: they ignore ports.
 */
import { newId, signal } from "./lib.js";

const KEY = "textor.token";
const BAD_TOKEN = 4401;
const PATIENCE = [300, 700, 1500, 3000, 5000]; // milliseconds between tries to connect

/** "" when we hold none, or when it was refused. */
export const token = signal(takeToken());

/** @type {import("../vendor/signals.js").Signal<"connecting" | "open" | "lost">} */
export const link = signal("connecting");

/** The token out of the address, which is then shown without it. */
function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    fragment.delete("token");
    history.replaceState(null, "", fragment.size ? `#${fragment}` : location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

/** Use another token. @param {string} given */
export function useToken(given) {
  sessionStorage.setItem(KEY, given);
  token.value = given;
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
  token.value = "";
}

addEventListener("hashchange", () => {
  if (location.hash.includes("token=")) token.value = takeToken();
});

/** The session that the address names. */
export function sessionInAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("s") ?? "";
}

export class Refusal extends Error {}

/**
 * Ask the server. Throws `Refusal` with its sentence, or an Error when it cannot be reached.
 * @param {string} path
 * @param {unknown} [body] posted when given
 * @returns {Promise<any>}
 */
export function ask(path, body) {
  return call(body === undefined ? "GET" : "POST", `/api/${path}`, body);
}

/**
 * The same for any way of the server, by any method.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, signal) {
  const response = await request(path, {
    method,
    signal,
    headers: { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.json().catch(() => ({}));
}

/** The content of something, as an address that stands in an <img> or is saved. @param {string} path */
export async function content(path) {
  const blob = await (await request(path, {})).blob();
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** An answer that is none of an error. @param {string} path @param {RequestInit} options */
async function request(path, options) {
  /** @type {Response} */
  let response;
  try {
    const headers = { ...options.headers, authorization: `Bearer ${token.peek()}` };
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("Textor cannot be reached. Your text is kept; try again when it is back.");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) forgetToken();
  throw new Refusal(answer.error ?? `The server answered ${response.status}.`);
}

/**
 * Hand a command to a session. The id makes a repetition harmless, so it is tried again once
 * when the connection breaks.
 * @param {string} session
 * @param {Record<string, unknown>} command
 */
export async function command(session, command) {
  const whole = { id: newId(), ...command };
  const path = `sessions/${encodeURIComponent(session)}/commands`;
  try {
    return await ask(path, whole);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return ask(path, whole);
  }
}

/** The tab's WebSocket: connects, connects again, and tells where it stands in `link`. */
export class Connection {
  /**
   * @param {(frame: Frame) => void} receive
   * @param {() => {session: string, after: number}} position what to follow, and from where
   */
  constructor(receive, position) {
    this.receive = receive;
    this.position = position;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.tries = 0;
    this.timer = 0;
    for (const name of ["online", "focus"]) addEventListener(name, () => this.hurry());
  }

  connect() {
    clearTimeout(this.timer);
    this.socket?.close();
    if (!token.peek()) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/stream`);
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      link.value = "open";
      socket.send(JSON.stringify({ token: token.peek(), ...this.position() }));
    };
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      const frame = JSON.parse(message.data);
      for (const one of Array.isArray(frame) ? frame : [frame]) this.receive(one);
    };
    socket.onclose = (close) => {
      if (socket !== this.socket) return;
      this.socket = null;
      if (close.code === BAD_TOKEN) return forgetToken();
      link.value = "lost";
      this.timer = setTimeout(() => this.connect(), PATIENCE[Math.min(this.tries++, PATIENCE.length - 1)]);
    };
  }

  /** Follow what `position` names now. */
  follow() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(this.position()));
  }

  hurry() {
    if (!this.socket) this.connect();
  }
}
