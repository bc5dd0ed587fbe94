import { expect, test } from "vitest";
import { ASSET_STATES } from "./asset.entity.ts";
import { assetMachine } from "./asset.machine.ts";

test("every state of an asset answers every event as reviewed", () => {
  expect(assetMachine.states).toEqual(ASSET_STATES);
  expect(assetMachine.print()).toBe(
    [
      "importing: stored→ready  broke→failed  delete→refuse  removed→refuse",
      "ready: stored→refuse  broke→refuse  delete→deleting  removed→refuse",
      "failed: stored→refuse  broke→ignore  delete→deleting  removed→refuse",
      "deleting: stored→refuse  broke→refuse  delete→ignore  removed→deleted",
      "deleted: stored→refuse  broke→refuse  delete→refuse  removed→ignore",
    ].join("\n"),
  );
});
