import { machine } from "../../../infra/kernel/machine.ts";

export const WORKLOAD_STATES = [
  "accepted",
  "planning",
  "reserving",
  "provisioning",
  "running",
  "recovering",
  "freezing",
  "frozen",
  "completed",
  "failed",
  "cancelled",
] as const;
export type WorkloadState = (typeof WORKLOAD_STATES)[number];

/**
 * plan: somebody looks for capacity; reserve, provision: capacity and money are taken, an order goes out; run: the first
 * command runs; interrupt: a generation was lost and another will follow; complete, fail, cancel: the end.
 * Freezing has its states here and no event yet.
 */
const WORKLOAD_EVENTS = ["plan", "reserve", "provision", "run", "interrupt", "complete", "fail", "cancel"] as const;
export type WorkloadEventName = (typeof WORKLOAD_EVENTS)[number];

const end = { complete: "ignore", fail: "ignore", cancel: "ignore" } as const;
const ended = {
  plan: "ignore",
  reserve: "ignore",
  provision: "ignore",
  run: "ignore",
  interrupt: "ignore",
  ...end,
} as const;
const frozen = { ...ended, fail: "failed", cancel: "cancelled" } as const;

/** Late and repeated events are ignored, so a redelivered job or record changes nothing. */
export const workloadMachine = machine({
  name: "workload",
  states: WORKLOAD_STATES,
  events: WORKLOAD_EVENTS,
  terminal: ["completed", "failed", "cancelled"],
  table: {
    accepted: {
      plan: "planning",
      reserve: "ignore",
      provision: "ignore",
      run: "ignore",
      interrupt: "ignore",
      complete: "ignore",
      fail: "failed",
      cancel: "cancelled",
    },
    planning: {
      plan: "ignore",
      reserve: "reserving",
      provision: "ignore",
      run: "ignore",
      interrupt: "ignore",
      complete: "ignore",
      fail: "failed",
      cancel: "cancelled",
    },
    reserving: {
      plan: "planning",
      reserve: "ignore",
      provision: "provisioning",
      run: "ignore",
      interrupt: "ignore",
      complete: "ignore",
      fail: "failed",
      cancel: "cancelled",
    },
    // plan: the offer did not boot, the next one is looked for.
    provisioning: {
      plan: "planning",
      reserve: "ignore",
      provision: "ignore",
      run: "running",
      interrupt: "recovering",
      complete: "ignore",
      fail: "failed",
      cancel: "cancelled",
    },
    // plan: the next stage looks for capacity while the workload goes on running.
    running: {
      plan: "ignore",
      reserve: "ignore",
      provision: "ignore",
      run: "ignore",
      interrupt: "recovering",
      complete: "completed",
      fail: "failed",
      cancel: "cancelled",
    },
    recovering: {
      plan: "ignore",
      reserve: "ignore",
      provision: "ignore",
      run: "running",
      interrupt: "ignore",
      complete: "completed",
      fail: "failed",
      cancel: "cancelled",
    },
    freezing: frozen,
    frozen,
    completed: ended,
    failed: ended,
    cancelled: ended,
  },
});

/** True when nothing more will happen to a workload's status. */
export function isTerminal(state: WorkloadState): boolean {
  return workloadMachine.terminal.has(state);
}
