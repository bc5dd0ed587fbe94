import http from "node:http";
import net, { type AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isPublicAddress, PrivateExceptions } from "../../net/public-address.ts";
import type { NetworkPolicy } from "../protocol.ts";
import { HostFixture } from "../testing/host-fixture.ts";
import { Denials } from "./denials.ts";
import { EgressPolicy } from "./policy.ts";

const policy = (change: Partial<NetworkPolicy>): NetworkPolicy => ({
  mode: "open",
  hosts: [],
  allowPrivate: [],
  ...change,
});

describe("isPublicAddress", () => {
  it("closes private, local, shared, metadata, multicast and reserved ranges", () => {
    const closed = [
      ...[
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.8.8.8",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
      ],
      ...["192.0.0.192", "192.168.1.1", "198.18.0.1", "224.0.0.251", "240.0.0.1", "255.255.255.255", "168.63.129.16"],
      ...[
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "fec0::1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
      ],
      ...[
        "::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
        "3fff::1",
        "example.com",
        "",
        "1.2.3",
        "0x7f.1",
      ],
    ];
    for (const address of closed) expect([address, isPublicAddress(address)]).toEqual([address, false]);
  });

  it("opens ordinary addresses, also next to closed ranges", () => {
    const open = [
      "8.8.8.8",
      "9.255.255.255",
      "11.0.0.0",
      "100.63.255.255",
      "100.128.0.0",
      "172.15.0.1",
      "172.32.0.1",
      "169.253.0.1",
      "223.255.255.255",
    ];
    for (const address of [...open, "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"]) {
      expect([address, isPublicAddress(address)]).toEqual([address, true]);
    }
  });

  it("closes the IPv6 form of every IPv4 address", () => {
    fc.assert(fc.property(fc.ipV4(), (v4) => !isPublicAddress(`::ffff:${v4}`) && !isPublicAddress(`64:ff9b::${v4}`)));
  });
});

describe("EgressPolicy", () => {
  const names: Record<string, string[]> = {
    "allowed.test": ["93.184.216.34"],
    "rebind.test": ["127.0.0.1"],
    "mixed.test": ["10.0.0.1", "93.184.216.34"],
    "own.test": ["93.184.216.99"],
  };
  const resolve = async (name: string) => names[name] ?? Promise.reject(new Error("no such name"));
  const judge = (change: Partial<NetworkPolicy>, host: string, port = 443) =>
    new EgressPolicy(policy(change), resolve, new Set(["93.184.216.99"])).judge(host, port);

  it("lets nothing out when it denies", async () => {
    expect(await judge({ mode: "deny", hosts: ["allowed.test"] }, "allowed.test")).toEqual({
      allowed: false,
      reason: "policy",
    });
  });

  it("lets nothing out without encryption where the policy says so", async () => {
    const allow: Partial<NetworkPolicy> = { mode: "allowlist", hosts: ["allowed.test"], httpsOnly: true };
    expect(await judge(allow, "allowed.test", 443)).toMatchObject({ allowed: true });
    expect(await judge(allow, "allowed.test", 80)).toEqual({ allowed: false, reason: "policy" });
  });

  it("lets exactly the listed hosts out, on ports 80 and 443", async () => {
    const allow: Partial<NetworkPolicy> = { mode: "allowlist", hosts: ["allowed.test"] };
    expect(await judge(allow, "ALLOWED.test.")).toEqual({ allowed: true, addresses: ["93.184.216.34"] });
    expect(await judge(allow, "allowed.test", 80)).toMatchObject({ allowed: true });
    for (const [host, port] of [
      ["allowed.test", 22],
      ["sub.allowed.test", 443],
      ["allowed.test.evil", 443],
      ["93.184.216.34", 443],
      ["", 443],
      ["allowed.test", 0],
    ] as const) {
      expect(await judge(allow, host, port)).toEqual({ allowed: false, reason: "policy" });
    }
  });

  it("judges the address that a name has, not the name, even of a listed host", async () => {
    expect(await judge({ mode: "allowlist", hosts: ["rebind.test"] }, "rebind.test")).toEqual({
      allowed: false,
      reason: "private",
    });
    expect(await judge({}, "mixed.test")).toEqual({ allowed: true, addresses: ["93.184.216.34"] });
    expect(await judge({}, "169.254.169.254", 80)).toEqual({ allowed: false, reason: "private" });
    expect(await judge({}, "[::1]", 80)).toEqual({ allowed: false, reason: "private" });
    expect(await judge({}, "own.test")).toEqual({ allowed: false, reason: "private" });
    expect(await judge({}, "nowhere.test")).toEqual({ allowed: false, reason: "unresolved" });
  });

  it("lets an operator open private hosts and ranges", async () => {
    expect(await judge({ allowPrivate: ["rebind.test"] }, "rebind.test", 8080)).toMatchObject({ allowed: true });
    expect(await judge({ allowPrivate: ["10.0.0.0/8"] }, "mixed.test")).toMatchObject({
      addresses: ["10.0.0.1", "93.184.216.34"],
    });
    expect(await judge({ mode: "allowlist", allowPrivate: ["rebind.test"] }, "rebind.test")).toEqual({
      allowed: false,
      reason: "policy",
    });
    expect(() => new PrivateExceptions(["http://x"])).toThrow("neither a host name");
  });
});

describe("Denials", () => {
  it("reports a host at once and its repeats together", () => {
    const told: [string, number][] = [];
    const denials = new Denials((host, count) => told.push([host, count]));
    for (let i = 0; i < 5; i++) denials.count("evil.test");
    expect(told).toEqual([["evil.test", 1]]);
    denials.flush();
    expect(told).toEqual([
      ["evil.test", 1],
      ["evil.test", 4],
    ]);
  });

  it("counts what comes after many different hosts under one name", () => {
    const told = new Map<string, number>();
    const denials = new Denials((host, count) => told.set(host, (told.get(host) ?? 0) + count));
    for (let i = 0; i < 5_000; i++) denials.count(`h${i}.test`);
    denials.flush();
    expect(told.size).toBe(201);
    expect([...told.values()].reduce((a, b) => a + b)).toBe(5_000);
  });
});

describe("the network of a guest", () => {
  let host: HostFixture;
  let port = 0;
  const server = http.createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () =>
      response
        .writeHead(request.url === "/teapot" ? 418 : 200, { "x-seen": request.headers.host ?? "" })
        .end(`${request.method} ${request.url} ${Buffer.concat(parts)}`),
    );
  });
  beforeAll(async () => {
    host = await HostFixture.start();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await host?.stop();
  });

  it("reaches through the proxy what an operator opened, plain and by tunnel", async () => {
    const curl = `curl -sS --max-time 10 -d body http://127.0.0.1:${port}/plain -x $http_proxy --noproxy ''; echo; curl -sS --max-time 10 -p -x $http_proxy --noproxy '' -w ' %{http_code}' http://127.0.0.1:${port}/teapot`;
    const order = await host.run(["sh", "-c", curl], { network: policy({ allowPrivate: ["127.0.0.1"] }) });
    expect(order.log.toString()).toBe("POST /plain body\nGET /teapot  418");
    expect(order.of("egress_denied")).toEqual([]);
  });

  it("is told why a host is refused, and the refusals are counted", async () => {
    const url = `http://127.0.0.1:${port}/`;
    const curl = `for i in 1 2 3; do curl -s --max-time 10 -x $http_proxy --noproxy '' ${url}; done; curl -s --max-time 10 -o /dev/null -w '%{http_connect}\\n' -p -x $http_proxy --noproxy '' http://169.254.169.254/latest`;
    const order = await host.run(["sh", "-c", curl], { network: policy({ mode: "open" }) });
    expect(order.log.toString()).toBe(
      `${"egress denied: private, local and metadata addresses can't be reached\n".repeat(3)}403\n`,
    );
    const denied = order.of("egress_denied");
    const counts = (name: string) =>
      denied.filter((record) => record.hostname === name).reduce((total, record) => total + record.count, 0);
    expect([counts("127.0.0.1"), counts("169.254.169.254")]).toEqual([3, 1]);
  });

  it("has no way around the proxy", async () => {
    const code = `
import socket
for where in [('127.0.0.1',${port}),('93.184.216.34',80),('10.0.0.1',80)]:
  try: socket.create_connection(where,2); print('reached')
  except OSError: print('refused')
try: socket.getaddrinfo('example.com',80); print('resolved')
except OSError: print('unresolved')
`;
    const order = await host.run(["python3", "-c", code], { network: policy({ mode: "open" }) });
    expect(order.log.toString()).toBe("refused\nrefused\nrefused\nunresolved\n");
  });

  it("is open to no request that is not one of a proxy", async () => {
    const raw = (text: string) => `printf '${text}' | timeout 5 python3 -c "
import socket,sys
s=socket.create_connection(('127.0.0.1',3128)); s.sendall(sys.stdin.buffer.read()); print(s.recv(100).split(b'\\\\r')[0].decode())"`;
    const order = await host.run(
      [
        "sh",
        "-c",
        [
          raw("GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n"),
          raw("CONNECT nowhere HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n"),
          raw("\\0\\0\\0\\0\\r\\n\\r\\n"),
        ].join("\n"),
      ],
      {
        network: policy({ mode: "open" }),
      },
    );
    expect(order.log.toString()).toMatch(/^HTTP\/1.1 400 Bad Request\nHTTP\/1.1 400 Bad Request\n/);
    expect((await host.run(["true"])).exit?.code).toBe(0);
  });

  it("lets a tunnel be closed from one side only, with nothing lost", async () => {
    const echo = net.createServer({ allowHalfOpen: true }, (socket) => {
      let text = "";
      socket.on("data", (part) => {
        text += part;
      });
      socket.on("end", () => socket.end(`got ${text.length}`));
    });
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    const target = `127.0.0.1:${(echo.address() as AddressInfo).port}`;
    const code = `
import socket
s=socket.create_connection(('127.0.0.1',3128)); s.sendall(b'CONNECT ${target} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'); s.recv(1000)
s.sendall(b'x'*1000000); s.shutdown(1); print(s.recv(100).decode())
`;
    const order = await host.run(["python3", "-c", code], { network: policy({ allowPrivate: ["127.0.0.0/8"] }) });
    echo.close();
    expect(order.log.toString()).toBe("got 1000000\n");
  });
});
