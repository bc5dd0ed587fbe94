import type { RefusalKind } from "../../../../infra/kernel/refusal.ts";
import { Refused } from "../../../../infra/kernel/refusal.ts";

/** Where a value stands in the request, as a JSON pointer such as `/requirements/gpu`; empty for the request itself. */
export type Pointer = string;

/** The pointer of a member or an element. */
export function at(parent: Pointer, step: string | number): Pointer {
  return `${parent}/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Refuses a field with a sentence that says what is wrong with it. */
export function refuse(kind: RefusalKind, field: Pointer, message?: string): never {
  throw new Refused(kind, message === undefined ? { field } : { field, message });
}

/** A pointer as people read it: `requirements.gpu`. */
export function spoken(field: Pointer): string {
  return field.slice(1).replaceAll("/", ".");
}
