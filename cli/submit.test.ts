import { expect, test, vi } from "vitest";
import { beginCommand } from "../tests/support/command-line.ts";
import { scriptedPlatform } from "../tests/support/scripted-platform.ts";

vi.setConfig({ testTimeout: 120_000 });

test("a submit whose answer is lost is asked again with the same key, and is one workload", async () => {
  const keys: unknown[] = [];
  const origin = await scriptedPlatform({
    answer: (_query, { input }, time) => {
      keys.push((input as { idempotencyKey: unknown }).idempotencyKey);
      return time === 1 ? null : { createWorkload: { workload: { id: "wl_1", status: "accepted" }, replayed: true } };
    },
  });
  const command = await beginCommand(["submit", "--", "true"], { NODUS_BASE_URL: origin, NODUS_API_KEY: "nk_x" });
  const { code, stdout, stderr } = await command.ended;
  expect([code, stdout]).toEqual([0, "wl_1\n"]);
  expect(stderr).toMatch(/Trying again for up to 5 minutes\.\nAccepted\.\n$/);
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0]]);
});
