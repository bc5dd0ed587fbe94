import { LIMITS } from "../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";

const PRINTABLE = new RegExp(`^[!-~]{1,${LIMITS.idempotencyKeyLength}}$`);

/** The required `Idempotency-Key` header; refused when it is missing or not 1 to 256 printable ASCII characters. */
export function idempotencyKey(header: string | string[] | undefined): string {
  if (header === undefined || header === "") throw new Refused(COMMON.missing_idempotency_key);
  if (typeof header !== "string" || !PRINTABLE.test(header)) throw new Refused(COMMON.invalid_idempotency_key);
  return header;
}
