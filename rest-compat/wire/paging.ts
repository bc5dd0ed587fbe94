import { COMMON, type RefusalKind } from "../../infra/kernel/refusal.ts";

/** Paging values are refused with codes of their own, which clients know. */
const KINDS: ReadonlyMap<string, RefusalKind> = new Map([
  ["limit", COMMON.invalid_limit],
  ["after", COMMON.invalid_cursor],
  ["cursor", COMMON.invalid_cursor],
  ["offset", COMMON.invalid_cursor],
]);

/** What a query parameter of this name is refused as. */
export function kindForParameter(name: string): RefusalKind {
  return KINDS.get(name) ?? COMMON.invalid_request;
}
