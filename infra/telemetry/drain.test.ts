import { describe, expect, test } from "vitest";
import { Drain, drainOnSignals, type SignalSource } from "./drain.ts";
import { createLogger } from "./logger.ts";

const logger = createLogger({ level: "silent", role: "test" });

describe("closing", () => {
  test("goes in the reverse order of opening, one after the other, once", async () => {
    const steps: string[] = [];
    const drain = new Drain(logger);
    for (const name of ["database", "queue", "server"])
      drain.onClose(name, async () => {
        steps.push(`${name} begins`);
        await new Promise((resolve) => setImmediate(resolve));
        steps.push(`${name} ends`);
      });
    expect(drain.closing).toBe(false);
    expect(await Promise.all([drain.close(), drain.close()])).toEqual([true, true]);
    expect(drain.closing).toBe(true);
    expect(steps).toEqual([
      "server begins",
      "server ends",
      "queue begins",
      "queue ends",
      "database begins",
      "database ends",
    ]);
  });

  test("goes on past a part that fails or hangs, and says that it was not clean", async () => {
    const closed: string[] = [];
    const drain = new Drain(logger);
    drain.onClose("first", () => void closed.push("first"));
    drain.onClose("hangs", () => new Promise(() => {}), 10);
    drain.onClose("fails", () => {
      throw new Error("broken");
    });
    expect(await drain.close()).toBe(false);
    expect(closed).toEqual(["first"]);
  });
});

class FakeProcess implements SignalSource {
  readonly exits: number[] = [];
  readonly #listeners = new Map<string, (signal: NodeJS.Signals) => void>();
  timeMs = 0;
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void {
    this.#listeners.set(signal, listener);
  }
  exit(code: number): void {
    this.exits.push(code);
  }
  nowMs(): number {
    return this.timeMs;
  }
  send(signal: NodeJS.Signals): void {
    this.#listeners.get(signal)!(signal);
  }
}

describe("a signal", () => {
  test("closes everything and exits 0", async () => {
    const source = new FakeProcess();
    const drain = new Drain(logger);
    drainOnSignals(drain, logger, 10_000, source);
    source.send("SIGTERM");
    await drain.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.exits).toEqual([0]);
  });

  test("that comes a second time exits at once, except as an echo of the first", () => {
    const source = new FakeProcess();
    const drain = new Drain(logger);
    drain.onClose("slow", () => new Promise(() => {}), 60_000);
    drainOnSignals(drain, logger, 60_000, source);
    source.send("SIGINT");
    source.timeMs = 200;
    source.send("SIGINT");
    expect(source.exits).toEqual([]);
    source.timeMs = 2_000;
    source.send("SIGINT");
    expect(source.exits).toEqual([130]);
  });

  test("exits 1 when a part did not close", async () => {
    const source = new FakeProcess();
    const drain = new Drain(logger);
    drain.onClose("fails", () => Promise.reject(new Error("broken")));
    drainOnSignals(drain, logger, 10_000, source);
    source.send("SIGTERM");
    await drain.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.exits).toEqual([1]);
  });
});
