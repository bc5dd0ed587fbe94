import { expect, test } from "vitest";
import { loadMachine } from "./load.machine.ts";

test("a load's life is what the table says, cell by cell", () => {
  expect(loadMachine.print()).toBe(
    [
      "pending: claimed→loading  released→ignore  stored→refuse  broke→failed  asked_again→ignore",
      "loading: claimed→refuse  released→pending  stored→loaded  broke→failed  asked_again→ignore",
      "loaded: claimed→refuse  released→ignore  stored→ignore  broke→ignore  asked_again→pending",
      "failed: claimed→refuse  released→ignore  stored→ignore  broke→ignore  asked_again→pending",
    ].join("\n"),
  );
});
