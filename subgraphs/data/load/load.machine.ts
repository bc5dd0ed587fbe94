import { machine } from "../../../infra/kernel/machine.ts";

/**
 * A load's life. `released` is one whose process went down or died: repeating a load changes nothing, so another process
 * takes it up. Nothing is terminal: a load that is over may be asked for again.
 */
export const loadMachine = machine({
  name: "load",
  states: ["pending", "loading", "loaded", "failed"],
  events: ["claimed", "released", "stored", "broke", "asked_again"],
  terminal: [],
  table: {
    pending: { claimed: "loading", released: "ignore", stored: "refuse", broke: "failed", asked_again: "ignore" },
    loading: { claimed: "refuse", released: "pending", stored: "loaded", broke: "failed", asked_again: "ignore" },
    loaded: { claimed: "refuse", released: "ignore", stored: "ignore", broke: "ignore", asked_again: "pending" },
    failed: { claimed: "refuse", released: "ignore", stored: "ignore", broke: "ignore", asked_again: "pending" },
  },
});
