// The shapes that come over the wire, and what the page makes of them (see src/textor/events.py).

interface SessionEvent {
  kind: string;
  id: string;
  /** seconds since 1970 UTC */
  time: number;
  seq: number;
  data: any;
}

interface Delta {
  agent: string;
  kind: string;
  text: string;
  /** the id of the action that it belongs to, "" for none */
  action?: string;
}

type Frame =
  | { type: "session"; session: string; head: number }
  | { type: "event"; event: SessionEvent }
  | ({ type: "delta" } & Omit<Delta, "type">)
  | { type: "error"; error: string };

interface Usage {
  input?: number;
  output?: number;
  cached?: number;
  cost?: number | null;
  estimated?: boolean;
}

interface Outcome {
  state: "done" | "failed" | "denied" | "cancelled" | "unknown";
  text?: string;
  values?: { name?: string; media_type: string; size?: number; text?: string | null }[];
  exit_status?: number | null;
}

interface SessionInfo {
  id: string;
  updated: number;
  status: "idle" | "runnable";
  title?: string;
}

interface ModelInfo {
  id: string;
  available?: boolean;
  note?: string;
}

interface AgentType {
  type: string;
  purpose?: string;
}

/** One thing in the conversation: `data` is changed in place, `view` is what is drawn. */
interface Item {
  key: string;
  type: "message" | "reply" | "action" | "question" | "review" | "note" | "end";
  data: any;
  view: import("../vendor/signals.js").Signal<any>;
}

interface AgentState {
  model: string;
  type: string;
  running: boolean;
  level: "run" | "pause" | "stop" | "kill";
  /** the open generation */
  open: Item | null;
  /** kind and text of deltas that came before the event of their generation */
  early: [string, string][];
  /** what its last generation of this turn said */
  said: string;
  /** its replies wait for a person */
  reviewed: boolean;
  /** the key of the review that is open, "" for none */
  review: string;
  /** it says what it thinks (`step`) */
  steps: boolean;
}

// -- plans and apps (see src/textor/broker/view.py) ------------------------------------------

interface PlanLine {
  id: string;
  text: string;
  skip: boolean;
  choice: string;
  state: "match" | "weak" | "ambiguous" | "fail" | "note";
  ready: boolean;
  exact: boolean;
  capability: string;
  phrase: string;
  fault: string;
  candidates: { capability: string; phrase: string; score: number }[];
  run: {
    state: string;
    text: string;
    reason: string;
    /** the id of the instance that it started */
    window: string;
    values: { name: string; kind: string; media_type: string; size: number; handle: string }[];
    log: { time: number; text: string }[];
  };
}

interface Plan {
  id: string;
  /** the number of its last event */
  seq: number;
  request: string;
  profile: string;
  status: "generating" | "ready" | "running" | "failed";
  detail: string;
  halted: string;
  original: string;
  text: string;
  reviewed: boolean;
  lines: PlanLine[];
}

interface AppInfo {
  class: string;
  title: string;
  purpose: string;
  version: string;
  capabilities: { name: string; phrase: string; purpose: string }[];
  icon: string;
  instances: { id: string; port: number; chosen: boolean; address: string }[];
}

interface PendingApp {
  class: string;
  title: string;
  program: string[];
  conflict: string;
  capabilities: { phrase: string; purpose: string }[];
  examples: { question: string; answers: string[] }[];
}

interface AppList {
  apps: AppInfo[];
  pending: PendingApp[];
  profile: string;
  /** what is in the box and not installed */
  box: string[];
}
