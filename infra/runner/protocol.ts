/**
 * The runner protocol, version 1: what a host agent and intake (`/runner/v1`) say to each other.
 *
 * One host agent runs per machine and holds one outbound WebSocket to intake (`GET /runner/v1/stream`), on which every
 * order of that machine is multiplexed as JSON text frames. Each order is authorised on its own: a one-time token, good
 * for ten minutes, is exchanged by `open` for a session that is bound to {order, generation, fence}; after a
 * reconnect `resume` takes the session up again. Bytes that are not log go over HTTP with the session as bearer:
 *
 *   GET  /runner/v1/orders/{orderId}/objects/{sha256}   source and inputs that the order's spec names
 *   PUT  /runner/v1/orders/{orderId}/objects            outputs; answers {sha256, bytes}; repeatable
 *
 * What must survive a crash of either side is a numbered record. The host appends records to an fsynced spool before it
 * sends them, and replays from the last acknowledged number when intake is back. Intake applies a record in one
 * transaction with its number, so a record sent twice counts once.
 */

/** Version in the URL path and in `open`. */
export const RUNNER_PROTOCOL = 1;

/** Largest frame that either side accepts. */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** What the platform wants of an order; `run` until told otherwise. A want never goes back to `run`. */
export const WANTS = ["run", "cancel", "stop_budget", "stop_deadline", "drain"] as const;
export type Want = (typeof WANTS)[number];

/** How far a guest may live without hearing from the platform again. Durations, not instants: clocks differ. */
export interface Allowance {
  want: Want;
  /** The guest dies this long after the answer was sent unless another answer comes. */
  leaseMs: number;
  /** Running time that is paid for, counted from `phase: running`; null when nothing is charged. */
  fundedRunMs: number | null;
  /** Time to the deadline, counted from the sending of this frame; null for none. */
  deadlineMs: number | null;
}

/** Reach of a guest's network, always through the host's proxy. */
export interface NetworkPolicy {
  mode: "deny" | "allowlist" | "open";
  /** Exact lower-case host names, for `allowlist`. */
  hosts: string[];
  /** Private hosts or CIDRs that may be reached all the same (operator's setting). */
  allowPrivate: string[];
  /** Only port 443, for `allowlist`; absent means 80 as well. */
  httpsOnly?: boolean;
}

/** Bytes that the host fetches from intake before the command starts. */
export interface StagedObject {
  /** Hex SHA-256 of the stored bytes; also their name in the URL. */
  sha256: string;
  bytes: number;
  /** `tar` is unpacked into the destination, `file` is written there under `name`. Stored tars are validated ones. */
  format: "tar" | "file";
  name: string;
}

/** Everything that a host needs to run one generation of one stage. Never holds a secret. */
export interface OrderSpec {
  orderId: string;
  workloadId: string;
  /** The stage's id in the payload, such as `main`. */
  stageId: string;
  generation: number;
  /** The image that was asked for; the local driver notes it and runs the host's userland. */
  image: string;
  /** argv, at least one element. */
  command: string[];
  /** Plain environment of the command, without secrets. */
  env: Record<string, string>;
  /** Names of secrets whose values `opened` delivers, as environment variable name. */
  secretEnv: string[];
  source: StagedObject | null;
  /** Each is unpacked into a directory of its own whose path is `NODUS_INPUT_<name>`. */
  inputs: { name: string; object: StagedObject }[];
  /** Output name → path relative to the working directory; null: archive non-empty `outputs/` and `results/`. */
  outputs: Record<string, string> | null;
  limits: {
    cpuMillis: number;
    memoryBytes: number;
    diskBytes: number;
    tmpBytes: number;
    processes: number;
    openFiles: number;
    /** Live capture and committed log, bytes after redaction. */
    logCaptureBytes: number;
    logCommittedBytes: number;
    /** SIGTERM to SIGKILL. */
    cancelGraceMs: number;
    outputBytes: number;
  };
  network: NetworkPolicy;
  accelerator: { model: string; count: number; simulated: boolean } | null;
}

/** Where a guest's isolation comes from, as measured, not as wished. */
export interface IsolationReport {
  level: "bubblewrap" | "none";
  /** Each host uid of its own. */
  ownUid: boolean;
  seccomp: boolean;
  limits: "cgroup-v2" | "cgroup-v1" | "rlimits";
  /** Sentence for people, such as why something is missing. */
  detail: string;
}

/** Why a guest stopped before its command did, decided by the host. */
export const KILLERS = ["cancel", "deadline", "funding", "lease", "memory", "disk", "drain", "host_shutdown"] as const;
export type KilledBy = (typeof KILLERS)[number];

/** How a command ended. Exactly one of code and signal is known for a process that ran; both null when it never did. */
export interface ExitRecord {
  type: "exit";
  code: number | null;
  signal: string | null;
  oom: boolean;
  killedBy: KilledBy | null;
  /** Set when the command never ran. */
  startFailure: { kind: "not_found" | "not_executable" | "staging" | "isolation" | "internal"; message: string } | null;
  /** Monotonic time from `phase: running` to the end of the last process; 0 when it never ran. */
  ranMs: number;
}

/** A durable, numbered fact about an order. `at` is the host's wall clock, ISO 8601. */
export type RunnerRecord = { seq: number; at: string } & (
  | { type: "phase"; phase: "staging" | "running"; isolation: IsolationReport; note: string | null }
  /**
   * Raw bytes after redaction in base64, at most 64 KiB of them, stdout and stderr merged in order of arrival; offset
   * counts raw bytes from 0 per generation.
   */
  | { type: "log"; offset: number; data: string }
  /** The committed-log limit was reached; later bytes are dropped. */
  | { type: "log_truncated"; offset: number }
  /** A `nodus.unit_done` line of stdout. */
  | { type: "unit"; id: string; ms: number }
  /** A `nodus.rl_event` line of stdout, unparsed beyond being JSON. */
  | { type: "rl_event"; event: Record<string, unknown> }
  /** `count` refusals of a host since the last record about it. */
  | { type: "egress_denied"; hostname: string; count: number }
  /** An output whose bytes intake already has. */
  | { type: "output"; name: string; sha256: string; bytes: number; media: string; isTar: boolean }
  | { type: "output_failed"; name: string; reason: string }
  | ExitRecord
  /** Nothing follows: no process and no file of the guest is left. */
  | { type: "end"; logBytes: number; logSha256: string; droppedUnits: number }
);

/** Frames from the host agent. */
export type HostFrame =
  | { type: "open"; orderId: string; token: string; protocol: number }
  | { type: "resume"; orderId: string; session: string; spooledSeq: number }
  | { type: "records"; orderId: string; session: string; records: RunnerRecord[] }
  | {
      type: "beat";
      orderId: string;
      session: string;
      /** Number of this beat on this connection, for the `want` that answers it. */
      beat?: number;
      spooledSeq: number;
      usage: { cpuMs: number; memoryBytes: number; diskBytes: number };
    };

/** Frames from intake. */
export type IntakeFrame =
  | {
      type: "opened";
      orderId: string;
      session: string;
      spec: OrderSpec;
      secrets: Record<string, string>;
      redact: string[];
      allowance: Allowance;
    }
  | { type: "resumed"; orderId: string; ackSeq: number; allowance: Allowance }
  | { type: "ack"; orderId: string; seq: number }
  /**
   * The answer to a beat, or a change that nobody asked for. Only the answer to a known beat renews the lease: `beat`
   * repeats its number and is null for a change. Left out, the frame counts as the answer to the oldest open beat.
   */
  | { type: "want"; orderId: string; beat?: number | null; allowance: Allowance }
  /** `fenced` and `unknown` mean: kill the guest, drop its spool, say no more. `retry` means: try again shortly. */
  | {
      type: "refused";
      orderId: string;
      code: "fenced" | "unknown" | "bad_token" | "bad_frame" | "retry";
      message: string;
    };

/**
 * What the local driver and a host agent say over the agent's Unix socket (newline-delimited JSON, one answer a request).
 * All of them are idempotent by order id; a terminated id is remembered, so a late launch of it is refused.
 */
export type HostCommand =
  | { op: "hello"; intakeUrl: string }
  | { op: "launch"; orderId: string; token: string; intakeUrl: string }
  | { op: "observe"; orderId: string }
  | { op: "terminate"; orderId: string }
  | { op: "list" };

export type HostAnswer =
  | { ok: true; op: "hello"; pid: number; version: string; isolation: IsolationReport; orders: string[] }
  | { ok: true; op: "launch"; state: "accepted" | "already" | "terminated" }
  | { ok: true; op: "observe"; state: "starting" | "running" | "ending" | "gone" | "never_seen" }
  | { ok: true; op: "terminate"; state: "terminating" | "gone" }
  | { ok: true; op: "list"; orders: string[] }
  | { ok: false; code: string; message: string };
