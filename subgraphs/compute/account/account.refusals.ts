import { refusals } from "../../../infra/kernel/refusal.ts";

/** What an admission or a change of an account is refused for. */
export const ACCOUNT = refusals({
  payment_method_required: [
    402,
    "The team has no payment method, which is needed even to spend starter credits.",
    "Have an administrator add a payment method.",
  ],
  budget_exceeded: [
    402,
    "The team's credits or spending limits do not cover the start of this work.",
    "Add credits, raise the limit, or wait for running work to end.",
  ],
  // A limit of the moment: it passes by itself when a workload ends, so clients may repeat the request.
  too_many_runs: [
    429,
    "The team has as many unfinished workloads as it may.",
    "Repeat the request once one of them has ended, or have an administrator raise the limit.",
  ],
  spend_check_unavailable: [
    503,
    "The team's spending cannot be measured just now, so nothing was admitted.",
    "Repeat the request with the same key.",
  ],
  account_not_found: [404, "The team has no account.", "Have an operator open one."],
  invalid_amount: [400, "The amount is not acceptable.", "Use an amount of dollars of at least one micro-dollar."],
  invalid_concurrent_runs_limit: [400, "The limit is not acceptable.", "Use a whole number from 0 to 1,000,000."],
});
