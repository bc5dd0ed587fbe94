import type { Database } from "../../infra/db/database.ts";
import { type MachineKind, SimulatedMarket } from "../../infra/drivers/simulated/market.ts";
import { echo } from "../../infra/drivers/simulated/script.ts";
import { type Actor, SCOPES } from "../../infra/kernel/actor.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { readSettings } from "../../infra/telemetry/environment.ts";
import { computeSettings } from "../../roles/compute-settings.ts";
import { openAccount } from "../../subgraphs/compute/account/account.commands.ts";
import { insertApiKey } from "../../subgraphs/compute/api-key/api-key.commands.ts";
import { newKeyText } from "../../subgraphs/compute/api-key/key-text.ts";
import { syncOffers } from "../../subgraphs/compute/offer/sync-offers.commands.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import { insertTeam } from "../../subgraphs/compute/team/team.commands.ts";
import type { WorkloadRequest } from "../../subgraphs/compute/workload/judge.ts";

/** A team of the bench with money enough, and a key of its own. */
export interface Tenant {
  readonly actor: Actor;
  readonly key: string;
}

/** More than any row of the bench submits. */
const RUNS = 2_000_000_000;
const CREDIT_MICROS = 1_000_000_000_000n;

/** Makes teams, each with a key and an account that never stands in the way. */
export async function makeTenants(db: Database, count: number): Promise<Tenant[]> {
  const now = systemClock.now();
  const tenants: Tenant[] = [];
  for (let i = 0; i < count; i++)
    tenants.push(
      await db.command(async (tx) => {
        const team = await insertTeam(tx, `Bench ${i}`, now);
        const key = newKeyText();
        const holder = { teamId: team.id, memberId: null, createdBy: null, expiresAt: null };
        const { id } = await insertApiKey(tx, { ...holder, name: "bench", scopes: SCOPES, key }, now);
        const account = { creditMicros: CREDIT_MICROS, paymentMethod: true, concurrentRunsLimit: RUNS };
        await openAccount(tx, { teamId: team.id, ...account }, now);
        const actor: Actor = {
          ...{ tenantId: team.id, keyId: id, memberId: null, email: "", name: "bench", role: "team" },
          scopes: SCOPES,
        };
        return { actor, key };
      }),
    );
  return tenants;
}

/** Compute's settings as a platform without any of its own has them. */
export function benchSettings(): ComputeSettings {
  return computeSettings(readSettings({ NODUS_CPU_FALLBACK: "1" }), "http://127.0.0.1:4000");
}

/** Kinds of machines that worker processes offer, each the same ones. */
export const WORKER_OFFERS = 1_000;

const FAMILIES = ["H100", "A100", "L4", "L40S", "T4", "A10G", "H200", null] as const;
const REGIONS = ["us-east", "us-west", "eu-north", "eu-west", "ap-south"] as const;

/** Kinds of machines with a real market's variety: families, counts, regions and prices; the same for the same count. */
export function machineKinds(count: number): MachineKind[] {
  return Array.from({ length: count }, (_, i): MachineKind => {
    const accelerator = FAMILIES[i % FAMILIES.length]!;
    const gpuCount = accelerator ? 2 ** (Math.floor(i / FAMILIES.length) % 4) : 0;
    return {
      ...{ sku: `kind-${i}`, region: REGIONS[i % REGIONS.length]!, accelerator, gpuCount },
      computeClass: accelerator ? "accelerator" : "vm",
      ...{ vcpus: 8, hostMemoryGb: 32, diskGb: 500, networkGbps: null, deviceMemoryGb: accelerator ? 80 : 0 },
      rateMicrosPerHour: BigInt(100_000 + ((i * 7919) % 3_000_000)),
      ...{ interruptible: false, isolated: true, note: null, expectedBootSeconds: 1, poolId: null, tenantId: null },
      ...{ machines: 10_000, ordersPerMachine: 8, bootMs: 0 },
    };
  });
}

/** A market whose machines come up and do nothing: what is measured is the platform's own part. */
export function silentMarket(kinds: readonly MachineKind[]): SimulatedMarket {
  return new SimulatedMarket({
    ...{ clock: systemClock, seed: 1, kinds, scripts: echo },
    connect: () => {
      throw new Error("machines of the silent market do not connect");
    },
  });
}

/** Writes a market's offers down as a look at the supplier would. */
export async function offerAll(db: Database, market: SimulatedMarket): Promise<void> {
  await syncOffers(db, "simulated", market.offers(), systemClock.now());
}

/** A workload that names one H100, and otherwise nothing. */
export function smallRequest(): WorkloadRequest {
  return { payload: { source: { command: ["true"] }, requirements: { gpu: "H100", gpu_count: 1 } } };
}
