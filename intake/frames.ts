import { Ajv } from "ajv";
import { LIMITS } from "../infra/kernel/limits.ts";
import type { HostFrame } from "../infra/runner/protocol.ts";

const text = { type: "string", maxLength: 512 } as const;
const count = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const record = (type: string, required: string[], properties: Record<string, object>) => ({
  type: "object",
  required: ["seq", "at", "type", ...required],
  properties: { seq: { ...count, minimum: 1 }, at: text, type: { const: type }, ...properties },
});

const isolation = {
  type: "object",
  required: ["level", "ownUid", "seccomp", "limits", "detail"],
  properties: {
    level: { enum: ["bubblewrap", "none"] },
    ownUid: { type: "boolean" },
    seccomp: { type: "boolean" },
    limits: { enum: ["cgroup-v2", "cgroup-v1", "rlimits"] },
    detail: { type: "string", maxLength: 4096 },
  },
};

/** Base64 of the most bytes that a log record has. */
const LOG_DATA_LENGTH = Math.ceil(LIMITS.logChunkBytes / 3) * 4;

const records = [
  record("phase", ["phase", "isolation"], {
    phase: { enum: ["staging", "running"] },
    isolation,
    note: { type: ["string", "null"], maxLength: 4096 },
  }),
  record("log", ["offset", "data"], { offset: count, data: { type: "string", maxUnits: LOG_DATA_LENGTH } }),
  record("log_truncated", ["offset"], { offset: count }),
  record("unit", ["id", "ms"], { id: { type: "string", maxLength: 128 }, ms: { type: "number", minimum: 0 } }),
  record("rl_event", ["event"], { event: { type: "object" } }),
  record("egress_denied", ["hostname", "count"], { hostname: text, count }),
  record("output", ["name", "sha256", "bytes", "media", "isTar"], {
    name: { type: "string", minLength: 1, maxLength: 255, pattern: "^[A-Za-z0-9._-]+$" },
    sha256: { type: "string", pattern: "^[0-9a-f]{64}$" },
    bytes: count,
    media: text,
    isTar: { type: "boolean" },
  }),
  record("output_failed", ["name", "reason"], { name: text, reason: { type: "string", maxLength: 4096 } }),
  record("exit", ["code", "signal", "oom", "killedBy", "startFailure", "ranMs"], {
    code: { type: ["integer", "null"], minimum: 0, maximum: 255 },
    signal: { type: ["string", "null"], maxLength: 32 },
    oom: { type: "boolean" },
    killedBy: { enum: [null, "cancel", "deadline", "funding", "lease", "memory", "disk", "drain", "host_shutdown"] },
    startFailure: {
      type: ["object", "null"],
      required: ["kind", "message"],
      properties: {
        kind: { enum: ["not_found", "not_executable", "staging", "isolation", "internal"] },
        message: { type: "string", maxLength: 4096 },
      },
    },
    ranMs: { type: "number", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  }),
  record("end", ["logBytes", "logSha256", "droppedUnits"], {
    logBytes: count,
    logSha256: { type: "string", pattern: "^[0-9a-f]{64}$" },
    droppedUnits: count,
  }),
];

const frame = (type: string, required: string[], properties: Record<string, object>) => ({
  type: "object",
  required: ["type", "orderId", ...required],
  properties: { type: { const: type }, orderId: text, ...properties },
});

const ajv = new Ajv({ allowUnionTypes: true, discriminator: true });
// `maxLength` counts characters, one by one. What may be long is bounded by what it takes to hold it, which is known.
ajv.addKeyword({
  keyword: "maxUnits",
  type: "string",
  schemaType: "number",
  compile: (most: number) => (text: string) => text.length <= most,
});

const validate = ajv.compile<HostFrame>({
  type: "object",
  required: ["type"],
  discriminator: { propertyName: "type" },
  oneOf: [
    frame("open", ["token", "protocol"], { token: text, protocol: count }),
    frame("resume", ["session", "spooledSeq"], { session: text, spooledSeq: count }),
    frame("records", ["session", "records"], {
      session: text,
      records: {
        type: "array",
        maxItems: 10_000,
        items: { type: "object", required: ["type"], discriminator: { propertyName: "type" }, oneOf: records },
      },
    }),
    frame("beat", ["session", "spooledSeq"], { session: text, beat: count, spooledSeq: count }),
  ],
});

/** An escape that may stand for NUL or for half a character; hardly any frame has one. */
const UNSTORABLE = /\\u(?:0000|[dD][89a-fA-F])/;

/** Text as the database takes it. Guests choose some of it, and a record that can't be stored would be sent for ever. */
function storable(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.replaceAll("\0", "\ufffd").toWellFormed() : value;
}

/** A host's frame; null for anything else. Hosts are trusted with their own orders only, so every frame is checked. */
export function parseHostFrame(data: string): HostFrame | null {
  let value: unknown;
  try {
    value = UNSTORABLE.test(data) ? JSON.parse(data, storable) : JSON.parse(data);
  } catch {
    return null; // not a frame: the connection is closed by the caller
  }
  return validate(value) ? value : null;
}
