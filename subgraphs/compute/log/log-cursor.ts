import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";

/**
 * A place in a workload's log: after so many bytes of a generation of a stage, written `stage:generation:bytes`. It does
 * not depend on how the log was cut into chunks, so a reader may stop and go on at any byte, also after the chunks were
 * moved into one object.
 */
export interface LogPosition {
  stageId: string;
  generation: number;
  bytes: number;
}

export function formatLogCursor({ stageId, generation, bytes }: LogPosition): string {
  return `${stageId}:${generation}:${bytes}`;
}

/** Reads a cursor; an empty one is the beginning. Refused as `invalid_cursor` when it is none. */
export function parseLogCursor(text: string | null | undefined): LogPosition | null {
  if (!text) return null;
  const match = /^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}):([1-9]\d{0,8}):(\d{1,15})$/.exec(text);
  if (!match) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return { stageId: match[1]!, generation: Number(match[2]), bytes: Number(match[3]) };
}
