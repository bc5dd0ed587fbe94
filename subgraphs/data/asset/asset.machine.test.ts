import { expect, test } from "vitest";
import { ASSET_STATES } from "./asset.entity.ts";
import { assetMachine } from "./asset.machine.ts";

test("every state of an asset answers every event as reviewed", () => {
  expect(assetMachine.states).toEqual(ASSET_STATES);
  expect(assetMachine.print()).toBe(
    [
      "importing: stored→ready  broke→failed  delete→refuse",
      "ready: stored→refuse  broke→refuse  delete→deleted",
      "failed: stored→refuse  broke→ignore  delete→deleted",
      "deleting: stored→refuse  broke→refuse  delete→deleted",
      "deleted: stored→refuse  broke→refuse  delete→refuse",
    ].join("\n"),
  );
});
