import { machine } from "../../../infra/kernel/machine.ts";

/**
 * An asset's life. Uploads come in at `ready`; `importing` is for sources that are fetched while a row is there already.
 * An asset is `deleting` from the moment that nobody can use it until its bytes are gone, or are another asset's.
 */
export const assetMachine = machine({
  name: "asset",
  states: ["importing", "ready", "failed", "deleting", "deleted"],
  events: ["stored", "broke", "delete", "removed"],
  terminal: ["deleted"],
  table: {
    importing: { stored: "ready", broke: "failed", delete: "refuse", removed: "refuse" },
    ready: { stored: "refuse", broke: "refuse", delete: "deleting", removed: "refuse" },
    failed: { stored: "refuse", broke: "ignore", delete: "deleting", removed: "refuse" },
    deleting: { stored: "refuse", broke: "refuse", delete: "ignore", removed: "deleted" },
    deleted: { stored: "refuse", broke: "refuse", delete: "refuse", removed: "ignore" },
  },
});
