import { expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import type { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import { beat } from "./session.commands.ts";

const deps = lifeOfEachTest();

async function fundedAfter(host: MiniatureHost, seconds: number): Promise<number> {
  await deps.clock.advance(seconds * 1_000);
  const allowance = await beat(deps, host.session);
  if ("refused" in allowance) throw new Error(allowance.message);
  return allowance.fundedRunMs!;
}

const held = async () => (await deps.db.row(Account, "where t.id = $1", [TENANT]))!.heldMicros;

test.each([1n, 59n, 60n, 3_600n, 100_000n, 98_000_000n])(
  "at %d micros an hour funded time only grows, and never ends before the next beats",
  async (rateMicrosPerHour) => {
    const { host } = await insertHosted(deps, { rateMicrosPerHour, heldMicros: 1n });
    await deps.db.sql("update compute.account set held_micros = 1 where id = $1", [TENANT]);
    await host.apply(host.running());
    let before = 0;
    for (let second = 5; second <= 400; second += 5) {
      const funded = await fundedAfter(host, 5);
      expect(funded).toBeGreaterThanOrEqual(Math.max(before, second * 1_000 + 10_000));
      before = funded;
    }
  },
);

test("nothing more is reserved, and nobody warned, while results of a command that is over are on their way", async () => {
  const { placed, host } = await insertHosted(deps, { maxCostMicros: 4_000n });
  await host.apply(host.running(), host.exit({ ranMs: 1_000 }));
  await fundedAfter(host, 80);
  expect(await held()).toBe(1_834n);
  const warnings = await deps.db.rows(
    WorkloadEvent,
    "where t.workload_id = $1 and t.type = 'workload.budget_warning'",
    [placed.workloadId],
  );
  expect(warnings).toEqual([]);
});

test("an empty account extends nothing and takes nothing away", async () => {
  await deps.db.sql("update compute.account set balance_micros = 1834 where id = $1", [TENANT]);
  const { host } = await insertHosted(deps);
  await host.apply(host.running());
  const funded = await fundedAfter(host, 5);
  expect(await fundedAfter(host, 50)).toBe(funded);
  expect(await held()).toBe(1_834n);
});
