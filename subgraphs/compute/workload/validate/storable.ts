import { MAX_BODY_DEPTH } from "../../../../infra/kernel/json-body.ts";
import { COMMON } from "../../../../infra/kernel/refusal.ts";
import { at, type Pointer, refuse } from "./refuse.ts";

/**
 * Refuses what the database could not store or nobody could walk: NUL and halves of characters in any text or member
 * name, and endless nesting. It comes before anything else looks at a request.
 */
export function checkStorable(value: unknown, field: Pointer = "", depth = 0): void {
  if (typeof value === "string") checkText(value, field);
  if (value === null || typeof value !== "object") return;
  if (depth >= MAX_BODY_DEPTH) refuse(COMMON.invalid_request, field, "The request nests too deep.");
  for (const [step, member] of Object.entries(value)) {
    checkText(step, field);
    checkStorable(member, at(field, step), depth + 1);
  }
}

function checkText(text: string, field: Pointer): void {
  if (text.includes("\0") || !text.isWellFormed())
    refuse(COMMON.invalid_request, field, "Text holds NUL or half a character.");
}
