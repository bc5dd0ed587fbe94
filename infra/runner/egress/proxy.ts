import { lookup } from "node:dns/promises";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import net from "node:net";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import { Turnstile } from "../../kernel/turnstile.ts";
import { EGRESS_SOCKET } from "../guest/messages.ts";
import { SocketFolder } from "../isolation/socket-folder.ts";
import type { NetworkPolicy } from "../protocol.ts";
import { Denials } from "./denials.ts";
import { EgressPolicy, normalHost, type Resolve } from "./policy.ts";

const CONNECT_TIMEOUT_MS = 10_000;
/** Connections of one guest at a time. */
const CONNECTIONS = 128;
/** Name look-ups of one guest at a time; they share a thread pool with the host agent's files. */
const LOOKUPS = 4;
/** Hop-by-hop headers; they end at the proxy. */
const NOT_FORWARDED = [
  "connection",
  "proxy-connection",
  "proxy-authorization",
  "proxy-authenticate",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
];

/** Opens a connection to an address that was judged. */
export type Dial = (address: string, port: number) => net.Socket;

export interface EgressNetwork {
  resolve: Resolve;
  dial: Dial;
  ownAddresses: ReadonlySet<string>;
}

/** The machine's own network. */
export function hostNetwork(): EgressNetwork {
  const own = Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).map((address) => address.address),
  );
  return {
    resolve: async (hostname) => (await lookup(hostname, { all: true })).map((found) => found.address),
    dial: (address, port) => net.connect({ host: address, port, allowHalfOpen: true }),
    ownAddresses: new Set(own),
  };
}

/** The one way out of a guest: an HTTP proxy on a socket in its run folder, with CONNECT for everything encrypted. */
export class EgressProxy {
  readonly #policy: EgressPolicy;
  readonly #network: EgressNetwork;
  readonly #denials: Denials;
  readonly #folder: SocketFolder;
  readonly #server: http.Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(
    run: string,
    policy: NetworkPolicy,
    network: EgressNetwork,
    denied: (hostname: string, count: number) => void,
  ) {
    const lookups = new Turnstile(LOOKUPS);
    const resolve: Resolve = (hostname) => lookups.pass(() => network.resolve(hostname));
    this.#policy = new EgressPolicy(policy, resolve, network.ownAddresses);
    this.#network = network;
    this.#denials = new Denials(denied);
    this.#folder = new SocketFolder(run);
    this.#server = http.createServer(
      { requestTimeout: 0 },
      (request, response) => void this.#forward(request, response),
    );
    this.#server.maxConnections = CONNECTIONS;
    this.#server.on(
      "connect",
      (request: IncomingMessage, socket: Duplex, head: Buffer) => void this.#tunnel(request, socket, head),
    );
    this.#server.on("connection", (socket) => this.#keep(socket));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
  }

  static async listen(
    run: string,
    policy: NetworkPolicy,
    network: EgressNetwork,
    denied: (hostname: string, count: number) => void,
  ): Promise<EgressProxy> {
    const proxy = new EgressProxy(run, policy, network, denied);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(
        { path: proxy.#folder.pathOf(EGRESS_SOCKET), readableAll: true, writableAll: true },
        resolve,
      );
    });
    return proxy;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#folder.close();
    this.#denials.flush();
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    // Either end may break at any time; `close` follows and takes the other end along.
    socket.on("error", () => socket.destroy()).on("close", () => this.#sockets.delete(socket));
  }

  async #tunnel(request: IncomingMessage, inside: Duplex, head: Buffer): Promise<void> {
    const target = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):(\d{1,5})$/.exec(request.url ?? "");
    if (!target) return void inside.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    const outside = await this.#reach(normalHost(target[1]!), Number(target[2]));
    if (typeof outside === "string") return void inside.end(refusal(outside));
    inside.on("close", () => outside.destroy());
    outside.on("close", () => inside.destroy());
    if (inside.destroyed) return void outside.destroy();
    inside.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.length > 0) outside.write(head);
    inside.pipe(outside).pipe(inside);
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? "");
    if (url?.protocol !== "http:")
      return void response
        .writeHead(400, { connection: "close" })
        .end("this is a proxy: ask for http://host/path, or CONNECT host:port\n");
    const port = Number(url.port || 80);
    const outside = await this.#reach(normalHost(url.hostname), port);
    if (typeof outside === "string")
      return void response.writeHead(STATUS[outside], { "content-type": "text/plain" }).end(explain(outside));
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => !NOT_FORWARDED.includes(name)),
    );
    const onward = http.request({
      createConnection: () => outside,
      method: request.method ?? "GET",
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, connection: "close" },
    });
    onward.on("response", (answer) => {
      const back = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !NOT_FORWARDED.includes(name)));
      response.writeHead(answer.statusCode ?? 502, back);
      answer.pipe(response);
    });
    onward.on("error", () =>
      response.headersSent ? response.destroy() : response.writeHead(502).end(explain("unreachable")),
    );
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  }

  /** A connection to a host that may be reached, or why there is none. */
  async #reach(host: string, port: number): Promise<net.Socket | Refusal> {
    const verdict = await this.#policy.judge(host, port);
    if (!verdict.allowed) {
      if (verdict.reason !== "unresolved") this.#denials.count(host);
      return verdict.reason;
    }
    for (const address of verdict.addresses.slice(0, 4)) {
      const socket = await connected(this.#network.dial(address, port));
      if (!socket) continue;
      this.#keep(socket);
      return socket;
    }
    return "unreachable";
  }
}

type Refusal = "policy" | "private" | "unresolved" | "unreachable";
const STATUS: Record<Refusal, number> = { policy: 403, private: 403, unresolved: 502, unreachable: 502 };

function explain(refusal: Refusal): string {
  return {
    policy: "egress denied: the network policy does not list this host and port\n",
    private: "egress denied: private, local and metadata addresses can't be reached\n",
    unresolved: "egress failed: the host name has no address\n",
    unreachable: "egress failed: the host does not answer\n",
  }[refusal];
}

/** The reason stands in the status line too: clients show nothing else of a tunnel that was refused. */
function refusal(reason: Refusal): string {
  const text = explain(reason);
  return `HTTP/1.1 ${STATUS[reason]} ${text.trim()}\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
}

function connected(socket: net.Socket): Promise<net.Socket | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), CONNECT_TIMEOUT_MS);
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve(socket);
    });
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(null);
    });
  });
}
