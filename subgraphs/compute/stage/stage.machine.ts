import { machine } from "../../../infra/kernel/machine.ts";

/** pending: waits for earlier stages; placing: wants capacity; starting: ordered; running; then the end. */
export const STAGE_STATES = ["pending", "placing", "starting", "running", "completed", "failed", "cancelled"] as const;
export type StageState = (typeof STAGE_STATES)[number];

const STAGE_EVENTS = ["ready", "order", "boot_failed", "run", "lost", "complete", "fail", "cancel"] as const;

const over = {
  ready: "ignore",
  order: "ignore",
  boot_failed: "ignore",
  run: "ignore",
  lost: "ignore",
  complete: "ignore",
  fail: "ignore",
  cancel: "ignore",
} as const;

export const stageMachine = machine({
  name: "stage",
  states: STAGE_STATES,
  events: STAGE_EVENTS,
  terminal: ["completed", "failed", "cancelled"],
  table: {
    pending: { ...over, ready: "placing", fail: "failed", cancel: "cancelled" },
    placing: { ...over, order: "starting", fail: "failed", cancel: "cancelled" },
    starting: { ...over, boot_failed: "placing", run: "running", lost: "placing", fail: "failed", cancel: "cancelled" },
    running: { ...over, lost: "placing", complete: "completed", fail: "failed", cancel: "cancelled" },
    completed: over,
    failed: over,
    cancelled: over,
  },
});
