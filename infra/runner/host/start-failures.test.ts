import { afterAll, beforeAll, expect, it } from "vitest";
import { HostFixture } from "../testing/host-fixture.ts";

let host: HostFixture;
beforeAll(async () => {
  host = await HostFixture.start();
}, 60_000);
afterAll(() => host.stop());

it.each([[[]], [[""]], [["", "x"]]])(
  "ends an order without a command at once, before anything is staged: %j",
  async (command) => {
    const missing = { sha256: "0".repeat(64), bytes: 1, format: "file", name: "in" } as const;
    const order = await host.run(command, { inputs: [{ name: "in", object: missing }] });
    expect(order.exit).toMatchObject({
      ...{ code: null, signal: null, killedBy: null, ranMs: 0 },
      startFailure: { kind: "not_found", message: "The order names no command, and the image's own is not used." },
    });
  },
);

it("says what is wrong with an argument that the system does not take", async () => {
  const [nul, long] = await Promise.all([host.run(["echo", "a\0b"]), host.run(["echo", "x".repeat(200_000)])]);
  expect(nul.exit?.startFailure).toEqual({
    kind: "not_executable",
    message: "echo: an argument or a variable holds a NUL character",
  });
  expect(long.exit?.startFailure).toEqual({
    kind: "not_executable",
    message: "echo: its arguments and environment are too long (E2BIG)",
  });
});
