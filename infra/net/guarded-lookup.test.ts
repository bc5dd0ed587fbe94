import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { guardedLookup, PrivateAddress, requirePublicLiteral } from "./guarded-lookup.ts";
import { PrivateExceptions } from "./public-address.ts";

const NONE = new PrivateExceptions([]);

function lookUp(host: string, exceptions: PrivateExceptions, all: boolean): Promise<unknown> {
  return new Promise((resolve, reject) => {
    guardedLookup(exceptions)(host, { all }, (error, address) => (error ? reject(error) : resolve(address)));
  });
}

test("a name that resolves to this machine is refused, in both ways of asking", async () => {
  await expect(lookUp("localhost", NONE, true)).rejects.toThrow(PrivateAddress);
  await expect(lookUp("localhost", NONE, false)).rejects.toMatchObject({
    code: "PRIVATE_ADDRESS",
    hostname: "localhost",
  });
});

test("a name that the operator opened resolves", async () => {
  const open = new PrivateExceptions(["localhost"]);
  expect(await lookUp("localhost", open, true)).toContainEqual({ address: "127.0.0.1", family: 4 });
  expect(await lookUp("localhost", open, false)).toMatch(/^(127\.0\.0\.1|::1)$/);
});

test("a name that is nowhere keeps its own error", async () => {
  await expect(lookUp("no-such-name.invalid", NONE, true)).rejects.toMatchObject({ syscall: "getaddrinfo" });
});

test.each(["127.0.0.1", "[::1]", "10.1.2.3", "169.254.169.254", "::ffff:127.0.0.1"])(
  "%s is refused as it is written",
  (host) => {
    expect(() => requirePublicLiteral(host, NONE)).toThrow(PrivateAddress);
  },
);

test("public addresses, names and opened ranges pass", () => {
  for (const host of ["8.8.8.8", "[2606:4700::1111]", "example.com"]) requirePublicLiteral(host, NONE);
  requirePublicLiteral("10.1.2.3", new PrivateExceptions(["10.0.0.0/8"]));
});

test("a socket connects only to what the lookup let through", async () => {
  const server = createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const refused = connect({ host: "localhost", port, lookup: guardedLookup(NONE) });
  expect((await once(refused, "error"))[0]).toBeInstanceOf(PrivateAddress);
  const letIn = connect({
    host: "localhost",
    port,
    lookup: guardedLookup(new PrivateExceptions(["127.0.0.0/8"])),
    family: 4,
  });
  expect(String((await once(letIn, "data"))[0])).toBe("hello");
  server.close();
});
