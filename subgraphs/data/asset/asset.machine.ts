import { machine } from "../../../infra/kernel/machine.ts";

/**
 * An asset's life. Uploads come in at `ready`; `importing` is for sources that are fetched while a row is there already.
 * Bytes are removed after the asset is `deleted`, so nobody waits in `deleting`; a row that is there goes on from it.
 */
export const assetMachine = machine({
  name: "asset",
  states: ["importing", "ready", "failed", "deleting", "deleted"],
  events: ["stored", "broke", "delete"],
  terminal: ["deleted"],
  table: {
    importing: { stored: "ready", broke: "failed", delete: "refuse" },
    ready: { stored: "refuse", broke: "refuse", delete: "deleted" },
    failed: { stored: "refuse", broke: "ignore", delete: "deleted" },
    deleting: { stored: "refuse", broke: "refuse", delete: "deleted" },
    deleted: { stored: "refuse", broke: "refuse", delete: "refuse" },
  },
});
