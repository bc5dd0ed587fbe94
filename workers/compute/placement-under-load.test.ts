import { afterEach, describe, expect, test } from "vitest";
import { claimBatch } from "../../subgraphs/compute/placement/claim.commands.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { TENANT } from "../../tests/support/compute-fixtures.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import { inUse, type MarketWorld, marketWorld, staying, workerDeps } from "../../tests/support/market-world.ts";
import { createPlacer } from "./place-stage.ts";

let world: MarketWorld;
afterEach(() => world.close());

describe("many at once", () => {
  test("fifty processes claim at the same time and nothing is given out twice", async () => {
    world = await marketWorld({
      kinds: [{ ...CPU_KIND, ordersPerMachine: 30, bootMs: 3_000_000 }],
      settings: { cpuFallback: true },
    });
    const total = 50;
    for (let i = 0; i < total; i++) await world.submit();
    const placers = Array.from({ length: total }, () => createPlacer(workerDeps(world.deps, world.driver)));
    const results = await Promise.all(placers.map((placer) => placer.placeBatch({ signal: staying })));
    let placed = results.reduce((sum, r) => sum + r.placed, 0);
    for (;;) {
      const more = await world.place();
      if (more.looked === 0) break;
      placed += more.placed;
    }
    expect(placed).toBe(30);
    expect(world.market.orders.size).toBe(30);
    const { cpu, slots, held } = await inUse(world);
    expect({ cpu, slots, held }).toEqual({ cpu: 3_000, slots: 30, held: 30 * 1_834 });
    const waiting = await world.db.rows(Workload, "where t.waiting_reason = 'no_capacity'");
    expect(waiting).toHaveLength(20);
  });

  test("a team with thousands of stages does not keep another team's one waiting", async () => {
    world = await marketWorld({ kinds: [{ ...CPU_KIND, machines: 50, bootMs: 3_000_000 }] });
    await otherTenants();
    for (let i = 0; i < 300; i++) await world.submit();
    const late = [await inTenant("team_a"), await inTenant("team_z"), await inTenant("team_a")];
    await world.place();
    const states = await world.db.sql<{ id: string; status: string }>(
      "select id, status from compute.stage where id = any($1)",
      [late],
    );
    expect(states.map((s) => s.status)).toEqual(["starting", "starting", "starting"]);
  });

  test("each team's oldest come first, and the round goes on behind the team that was served last", async () => {
    world = await marketWorld({ kinds: [{ ...CPU_KIND, machines: 50, bootMs: 3_000_000 }] });
    await otherTenants();
    const order: string[] = [];
    for (const tenant of ["team_a", "team_a", TENANT, TENANT, "team_z", "team_z"]) {
      order.push(await inTenant(tenant));
      await world.clock.advance(1);
    }
    const [a1, a2, f1, f2, z1, z2] = order;
    const rounds: string[][] = [];
    let afterTenant = "";
    for (let i = 0; i < 4; i++) {
      const request = { limit: 2, afterTenant, dueBy: world.clock.now(), untriedSince: null };
      const batch = await claimBatch(world.deps, request);
      afterTenant = batch.lastTenant;
      const ids = batch.orders.map((o) => o.order.orderId);
      const placed = await world.db.rows(Placement, "where t.order_id = any($1) order by t.tenant_id", [ids]);
      rounds.push(placed.map((p) => p.stageRunId));
    }
    expect(rounds).toEqual([[a1, f1], [a2, z1].toSorted(byTenant), [f2, z2], []]);

    function byTenant(x: string | undefined, y: string | undefined): number {
      return order.indexOf(x!) - order.indexOf(y!);
    }
  });

  async function otherTenants(): Promise<void> {
    for (const tenant of ["team_a", "team_z"])
      await world.db.sql(
        "insert into compute.account select (jsonb_populate_record(a, jsonb_build_object('id', $1::text))).* from compute.account a where id = $2",
        [tenant, TENANT],
      );
  }

  async function inTenant(tenant: string): Promise<string> {
    const { workloadId, stageRunId } = await world.submit();
    await world.db.sql("update compute.workload set tenant_id = $2 where id = $1", [workloadId, tenant]);
    await world.db.sql("update compute.stage set tenant_id = $2 where id = $1", [stageRunId, tenant]);
    return stageRunId;
  }
});
