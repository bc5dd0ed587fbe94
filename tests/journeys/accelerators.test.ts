import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { script, settles, submit } from "../support/workloads.ts";

const platform = sharedPlatform({ NODUS_LOCAL_ACCELERATORS: "H100:8", NODUS_LOCAL_USD_PER_HOUR: "36" });

test.each([1, 2, 4, 8])(
  "the price shown for %i GPUs is for the machine with all of them, and is what is charged",
  {
    timeout: 60_000,
  },
  async (gpuCount) => {
    const client = platform().admin;
    const id = await submit(client, script("sleep 0.5", { requirements: { gpu: "H100", gpuCount } }));
    const state = await settles(client, id);
    expect(state).toMatchObject({ status: "completed" });
    const { route } = (await client.rest("getWorkload", { path: { id } })).body;
    expect(route.resources.gpu_count).toBe(gpuCount);
    const [row] = (await client.rest("getWorkloadRouting", { path: { id } })).body.placements;
    expect(row.price_usd_hour).toBe(route.price_usd_hour);
    const micros = (usd: number) => Math.round(usd * 1e6);
    const compute = Math.floor((micros(route.price_usd_hour) * state.placements[0].ranMs) / 3_600_000);
    expect(compute).toBeGreaterThan(0);
    const { entries } = (await client.rest("getWorkloadLedger", { path: { id } })).body;
    const charges = entries.filter((entry: { entry_type: string }) => entry.entry_type === "customer_charge");
    expect(micros(charges[0].credit_usd)).toBe(compute);
    expect(micros(state.spendUsd)).toBe(compute + Math.floor(compute / 10));
  },
);

test("a simulated accelerator is called so wherever it shows", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script("true", { requirements: { gpu: "H100", gpuCount: 2 } }));
  await settles(client, id);
  const { events } = (await client.rest("listWorkloadEvents", { path: { id } })).body;
  const running = events.find((event: { event_type: string }) => event.event_type === "workload.running");
  expect(running.payload).toMatchObject({ simulated: true, accelerator: "H100", gpu_count: 2 });
  expect(running.payload.sku).toContain("sim");
  const [row] = (await client.rest("getWorkloadRouting", { path: { id } })).body.placements;
  expect(row.sku).toContain("sim");
});
