import { expect, test } from "vitest";
import { EXPORT_STATES } from "./export.entity.ts";
import { exportMachine } from "./export.machine.ts";

test("every state of an export answers every event as reviewed", () => {
  expect(exportMachine.states).toEqual(EXPORT_STATES);
  expect(exportMachine.print()).toBe(
    [
      "pending: claimed→running  released→ignore  stored→refuse  broke→cleanup",
      "running: claimed→refuse  released→pending  stored→ready  broke→cleanup",
      "cleanup: claimed→refuse  released→ignore  stored→refuse  broke→ignore",
      "ready: claimed→refuse  released→ignore  stored→ignore  broke→ignore",
    ].join("\n"),
  );
});
