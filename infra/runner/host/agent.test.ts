import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostFixture } from "../testing/host-fixture.ts";

describe("a host agent", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start();
  });
  afterAll(() => host.stop());

  it("runs a command and tells its log, its exit and its end", async () => {
    const order = await host.run(["sh", "-c", "echo out; echo err >&2; exit 3"]);
    expect(order.records.map((record) => record.type)).toEqual([
      "phase",
      "phase",
      expect.stringMatching(/log/),
      "exit",
      "end",
    ]);
    expect(order.log.toString()).toBe("out\nerr\n");
    expect(order.exit).toMatchObject({ code: 3, signal: null, oom: false, killedBy: null, startFailure: null });
  });
});
