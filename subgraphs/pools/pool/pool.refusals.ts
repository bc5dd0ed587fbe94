import { refusals } from "../../../infra/kernel/refusal.ts";

export const POOL = refusals({
  invalid_pool_name: [400, "The pool's name is not acceptable.", "Use one line of 1 to 200 bytes that is not blank."],
  pool_limit: [409, "The team has as many pools as it may.", "Use one of the pools that are there."],
});
