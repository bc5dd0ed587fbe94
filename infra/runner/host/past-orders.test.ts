import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PastOrders } from "./past-orders.ts";

describe("PastOrders", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "past-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const open = () => new PastOrders(join(folder, "past"));

  it("remember fates over restarts, a termination above an end, also of odd ids and after a torn line", () => {
    const past = open();
    past.remember("a", "ended");
    past.remember("a", "terminated");
    past.remember("b", "terminated");
    past.remember("b", "ended");
    past.remember('odd "\n id', "ended");
    appendFileSync(join(folder, "past"), '["c","en');
    const again = open();
    expect(["a", "b", 'odd "\n id', "c"].map((id) => again.get(id))).toEqual([
      "terminated",
      "terminated",
      "ended",
      null,
    ]);
    again.remember("d", "ended");
    expect(open().get("d")).toBe("ended");
  });

  it("forget the oldest, in memory and on disk", () => {
    const past = open();
    for (let i = 0; i < 40_100; i++) past.remember(`o${i}`, "ended");
    expect([past.get("o0"), past.get("o20099"), past.get("o20100")]).toEqual([null, null, "ended"]);
    expect(readFileSync(join(folder, "past"), "utf8").split("\n").length).toBeLessThan(20_200);
    expect(open().get("o40099")).toBe("ended");
  });
});
