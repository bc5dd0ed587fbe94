import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Driver, LaunchOrder, OfferFact } from "../../infra/drivers/driver.ts";
import { newId } from "../../infra/kernel/ids.ts";
import { orderToken } from "../../subgraphs/compute/placement/order-token.ts";

/** A driver with a supplier behind it, for one test. */
export interface DriverUnderTest {
  driver: Driver;
  /** Another driver to the same supplier, as a restarted platform makes one. Closed by the suite. */
  another(): Promise<Driver>;
  /** Where runners of launched orders find intake; nobody need answer there. */
  intakeUrl: string;
  /** Lets a little time pass at the supplier. */
  tick(): Promise<void>;
  /** Ends whatever still runs. */
  close(): Promise<void>;
}

const TEST_MS = 60_000;
const RUNNER_KEY = new Uint8Array(32).fill(3);

/** What every driver promises. `make` is called for each test. */
export function driverConformance(name: string, make: () => Promise<DriverUnderTest>): void {
  describe(`the ${name} driver`, { timeout: TEST_MS }, () => {
    let under: DriverUnderTest;
    const signal = AbortSignal.timeout(10 * TEST_MS);

    beforeEach(async () => {
      under = await make();
    }, TEST_MS);
    afterEach(() => under.close(), TEST_MS);

    async function order(): Promise<LaunchOrder> {
      const offer = (await under.driver.offers(signal)).find((o) => o.gpuCount === 0) as OfferFact;
      const orderId = newId("order", new Date());
      return {
        orderId,
        sku: offer.sku,
        region: offer.region,
        token: orderToken(RUNNER_KEY, orderId),
        intakeUrl: under.intakeUrl,
        cpuMillis: 100,
        memoryMb: 64,
        gpuCount: 0,
      };
    }

    async function launched(): Promise<string> {
      const wanted = await order();
      const { outcome } = await under.driver.launch(wanted, signal);
      expect(["accepted", "pending"]).toContain(outcome);
      return wanted.orderId;
    }

    /** Asks again, as time passes, until the answer is one of these. */
    async function becomes<T>(ask: () => Promise<T>, wanted: readonly T[]): Promise<void> {
      await expect
        .poll(
          async () => {
            await under.tick();
            return wanted.includes(await ask());
          },
          { timeout: TEST_MS / 2, interval: 20 },
        )
        .toBe(true);
    }

    const stateOf = async (orderId: string, driver = under.driver) => (await driver.observe(orderId, signal)).state;
    const terminate = (orderId: string) => under.driver.terminate(orderId, signal);
    const holds = async (orderId: string) => (await under.driver.list(signal))?.includes(orderId) ?? null;

    test("offers configurations that are each known by sku and region, with sizes that mean something", async () => {
      const offers = await under.driver.offers(signal);
      expect(offers.length).toBeGreaterThan(0);
      expect(new Set(offers.map((o) => `${o.region}/${o.sku}`)).size).toBe(offers.length);
      for (const offer of offers) {
        expect(offer.vcpus).toBeGreaterThan(0);
        expect(offer.hostMemoryGb).toBeGreaterThan(0);
        expect(offer.rateMicrosPerHour).toBeGreaterThanOrEqual(0n);
        expect(offer.accelerator === null).toBe(offer.computeClass === "vm");
        expect(offer.gpuCount > 0).toBe(offer.computeClass === "accelerator");
        expect(offer.capacity.slots).toBeGreaterThan(0);
        expect(offer.capacity.gpus).toBeGreaterThanOrEqual(offer.gpuCount);
      }
    });

    test("offers the same when nothing has happened in between", async () => {
      expect(await under.driver.offers(signal)).toEqual(await under.driver.offers(signal));
    });

    test("says of capacity that several offers share the same thing in each of them", async () => {
      const byKey = Map.groupBy(await under.driver.offers(signal), (o) => o.capacity.key);
      for (const offers of byKey.values())
        for (const offer of offers) expect(offer.capacity).toEqual(offers[0]!.capacity);
    });

    test("takes an order once, however often it is launched", async () => {
      const wanted = await order();
      await under.driver.launch(wanted, signal);
      const again = await under.driver.launch(wanted, signal);
      expect(["accepted", "pending"]).toContain(again.outcome);
      const held = await under.driver.list(signal);
      expect(held?.filter((id) => id === wanted.orderId)).toEqual([wanted.orderId]);
    });

    test("shows an order that it took as starting or running, and lists it", async () => {
      const orderId = await launched();
      await becomes(() => stateOf(orderId), ["starting", "running"]);
      expect(await holds(orderId)).toBe(true);
    });

    test("does not know what became of an order that it never saw, which is not to say that it is gone", async () => {
      expect(["never_seen", "unknown"]).toContain(await stateOf((await order()).orderId));
    });

    test("ends an order for good: gone is repeated, and it is listed no more", async () => {
      const orderId = await launched();
      await becomes(() => terminate(orderId), ["gone"]);
      expect(await terminate(orderId)).toBe("gone");
      expect(["gone", "unknown"]).toContain(await stateOf(orderId));
      expect(await holds(orderId)).toBe(false);
    });

    test("refuses a launch that comes after its order was ended", async () => {
      const wanted = await order();
      await under.driver.launch(wanted, signal);
      await becomes(() => terminate(wanted.orderId), ["gone"]);
      expect(await under.driver.launch(wanted, signal)).toMatchObject({ outcome: "refused" });
      expect(await holds(wanted.orderId)).toBe(false);
    });

    test("refuses a launch that was overtaken by its order's end", async () => {
      const wanted = await order();
      await becomes(() => terminate(wanted.orderId), ["gone"]);
      expect(await under.driver.launch(wanted, signal)).toMatchObject({ outcome: "refused" });
      await under.tick();
      expect(await holds(wanted.orderId)).toBe(false);
    });

    test("keeps orders apart: the end of one leaves the other", async () => {
      const [one, other] = [await launched(), await launched()];
      await becomes(() => stateOf(other), ["starting", "running"]);
      await becomes(() => terminate(one), ["gone"]);
      expect(await stateOf(other)).not.toBe("gone");
      expect(await holds(other)).toBe(true);
    });

    test("keeps nothing in itself that a restart would lose", async () => {
      const orderId = await launched();
      const driver = await under.another();
      try {
        await becomes(() => stateOf(orderId, driver), ["starting", "running"]);
        expect(await driver.list(signal)).toContain(orderId);
        await becomes(() => driver.terminate(orderId, signal), ["gone"]);
        await becomes(() => stateOf(orderId), ["gone", "unknown"]);
      } finally {
        await driver.close();
      }
    });

    test("answers with values when it is given no time, and what it then says is true or unknown", async () => {
      const wanted = await order();
      const over = AbortSignal.abort(new Error("no time"));
      expect(["unknown", "accepted", "pending"]).toContain((await under.driver.launch(wanted, over)).outcome);
      expect(["never_seen", "unknown", "starting", "running"]).toContain(
        (await under.driver.observe(wanted.orderId, over)).state,
      );
      const listed = await under.driver.list(over);
      expect(listed === null || Array.isArray(listed)).toBe(true);
      expect(["terminating", "gone", "unknown"]).toContain(await under.driver.terminate(wanted.orderId, over));
      await becomes(() => terminate(wanted.orderId), ["gone"]);
      expect(await holds(wanted.orderId)).toBe(false);
    });
  });
}
