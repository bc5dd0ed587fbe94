import { expect, test, vi } from "vitest";
import { beginCommand } from "../tests/support/command-line.ts";
import { scriptedPlatform } from "../tests/support/scripted-platform.ts";

vi.setConfig({ testTimeout: 120_000 });

test("a request to end a workload whose answer is lost is made again, which changes nothing more", async () => {
  let asked = 0;
  const origin = await scriptedPlatform({
    answer: (query, _variables, time) => {
      if (query.includes("query state")) return { workload: { status: "running" } };
      asked = time;
      return time === 1 ? null : { cancelWorkload: { workload: { status: "running" } } };
    },
  });
  const environment = { NODUS_BASE_URL: origin, NODUS_API_KEY: "nk_x" };
  const { code, stderr } = await (await beginCommand(["cancel", "wl_1", "--no-wait"], environment)).ended;
  expect([code, asked]).toEqual([0, 2]);
  expect(stderr).toMatch(/Trying again for up to 5 minutes\.\nwl_1 was asked to end\.\n$/);
});
