import { machine } from "../../../infra/kernel/machine.ts";

/** provisioning: an order is out; running: its command runs; ended: the command is over; closed: gone and settled. */
export const PLACEMENT_STATES = ["provisioning", "running", "ended", "closed"] as const;
export type PlacementState = (typeof PLACEMENT_STATES)[number];

const PLACEMENT_EVENTS = ["run", "end", "close"] as const;

export const placementMachine = machine({
  name: "placement",
  states: PLACEMENT_STATES,
  events: PLACEMENT_EVENTS,
  terminal: ["closed"],
  table: {
    provisioning: { run: "running", end: "ended", close: "ignore" },
    running: { run: "ignore", end: "ended", close: "ignore" },
    ended: { run: "ignore", end: "ignore", close: "closed" },
    closed: { run: "ignore", end: "ignore", close: "ignore" },
  },
});

/** launching: the order may or may not have reached the supplier; then what became of it. */
export const ATTEMPT_STATES = ["launching", "booting", "running", "failed", "ended", "gone"] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

const ATTEMPT_EVENTS = ["launched", "run", "fail", "end", "confirm_gone"] as const;

export const attemptMachine = machine({
  name: "attempt",
  states: ATTEMPT_STATES,
  events: ATTEMPT_EVENTS,
  terminal: ["gone"],
  table: {
    launching: { launched: "booting", run: "running", fail: "failed", end: "ended", confirm_gone: "ignore" },
    booting: { launched: "ignore", run: "running", fail: "failed", end: "ended", confirm_gone: "ignore" },
    running: { launched: "ignore", run: "ignore", fail: "ignore", end: "ended", confirm_gone: "ignore" },
    failed: { launched: "ignore", run: "ignore", fail: "ignore", end: "ignore", confirm_gone: "gone" },
    ended: { launched: "ignore", run: "ignore", fail: "ignore", end: "ignore", confirm_gone: "gone" },
    gone: { launched: "ignore", run: "ignore", fail: "ignore", end: "ignore", confirm_gone: "ignore" },
  },
});
