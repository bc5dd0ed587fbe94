import { machine } from "../../../infra/kernel/machine.ts";

/**
 * An export's life. `released` is a process that goes down in good order: another takes the export up. One whose process
 * died has run its query against the customer's database already, so it fails. `cleanup` is failed with something left;
 * whether that is gone too is told by `cleaned_at`.
 */
export const exportMachine = machine({
  name: "export",
  states: ["pending", "running", "cleanup", "ready"],
  events: ["claimed", "released", "stored", "broke"],
  terminal: ["cleanup", "ready"],
  table: {
    pending: { claimed: "running", released: "ignore", stored: "refuse", broke: "cleanup" },
    running: { claimed: "refuse", released: "pending", stored: "ready", broke: "cleanup" },
    cleanup: { claimed: "refuse", released: "ignore", stored: "refuse", broke: "ignore" },
    ready: { claimed: "refuse", released: "ignore", stored: "ignore", broke: "ignore" },
  },
});
