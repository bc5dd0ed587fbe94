import type { Readable } from "node:stream";
import { type JsonBody, parseJsonBody } from "../../infra/kernel/json-body.ts";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import { type Place, pointer } from "./pointer.ts";

/** Reads a body into memory; refused as `body_too_large` as soon as it passes the limit. The stream is left as it is then. */
export function collect(stream: Readable, limitBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let byteCount = 0;
  const onData = (chunk: Buffer) => {
    byteCount += chunk.byteLength;
    chunks.push(chunk);
    if (byteCount > limitBytes) settle(() => reject(tooLarge(limitBytes)));
  };
  const onEnd = () => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  const onError = () => settle(() => reject(new Refused(COMMON.invalid_request, { message: "The body broke off." })));
  function settle(outcome: () => void): void {
    stream.off("data", onData).off("end", onEnd).off("error", onError).pause();
    outcome();
  }
  stream.on("data", onData).on("end", onEnd).on("error", onError);
  return promise;
}

function tooLarge(limitBytes: number): Refused {
  return new Refused(COMMON.body_too_large, {
    message: `The body is larger than ${limitBytes} bytes.`,
    extra: { limit_bytes: limitBytes },
  });
}

/** One JSON object that the platform can store: UTF-8, and no string with a NUL or half a surrogate pair. */
export function readJsonBody(bytes: Uint8Array): JsonBody {
  const body = parseJsonBody(bytes);
  // Both can only be written as an escape, or as a raw character that UTF-8 or JSON has already refused.
  if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes("\\u")) refuseUnstorable(body.value, null);
  return body;
}

/** Refuses repeated members at or below the given pointers; the empty pointer means the whole body. */
export function refuseRepeats(body: JsonBody, within: readonly string[]): void {
  const repeat = body.repeated.find((at) => within.some((root) => at === root || at.startsWith(`${root}/`)));
  if (repeat !== undefined)
    throw new Refused(COMMON.duplicate_field, { field: repeat, message: `${repeat} is given more than once.` });
}

function refuseUnstorable(value: unknown, place: Place): void {
  if (typeof value === "string") refuseText(value, place);
  if (value === null || typeof value !== "object") return;
  for (const [key, member] of Object.entries(value)) {
    refuseText(key, place);
    refuseUnstorable(member, { within: place, step: key });
  }
}

function refuseText(text: string, place: Place): void {
  if (!text.includes("\0") && text.isWellFormed()) return;
  const field = pointer(place);
  throw new Refused(COMMON.invalid_request, {
    field,
    message: `${field || "The body"} has a character that is not allowed (NUL or half a surrogate pair).`,
  });
}
