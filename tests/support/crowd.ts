import http from "node:http";
import { inspect } from "node:util";
import { type Client, createClient } from "graphql-ws";
import WebSocket from "ws";
import type { PlatformClient } from "./platform-client.ts";
import { until } from "./until.ts";

/** Enough to tell one kind of complaint from another. */
const COMPLAINT_LENGTH = 400;

/** How the readers of a crowd go: by closing each stream, by cutting the connections, or by waiting to be sent away. */
export type Leaving = "close" | "cut" | "stay";

export interface CrowdPlan {
  /** Subscription of one `$id`. */
  readonly document: string;
  /** Workloads that are read, in turn. */
  readonly ids: readonly string[];
  /** WebSockets, and subscriptions on each of them. */
  readonly sockets: number;
  readonly perSocket: number;
  /** Streams of server-sent events, each on a connection of its own. */
  readonly events: number;
}

/** Many readers at once, of whom nothing is kept but that they are there and how they ended. */
export class Crowd {
  /** Streams that have ended, whoever ended them. */
  ended = 0;
  /** What streams said that were not let in or broke off, and how many said so. */
  readonly complaints = new Map<string, number>();
  readonly size: number;
  readonly #sockets: Client[] = [];
  readonly #wires: WebSocket[] = [];
  readonly #unsubscribe: (() => void)[] = [];
  readonly #requests: http.ClientRequest[] = [];

  constructor(client: PlatformClient, plan: CrowdPlan) {
    this.size = plan.sockets * plan.perSocket + plan.events;
    let turn = 0;
    const variables = () => ({ id: plan.ids[turn++ % plan.ids.length] });
    for (let n = 0; n < plan.sockets; n++) this.#openSocket(client, plan, variables);
    for (let n = 0; n < plan.events; n++) this.#openEvents(client, plan.document, variables());
  }

  /** Everybody goes; resolves when all streams have ended on this side. */
  async leave(how: Leaving): Promise<void> {
    if (how === "close") {
      for (const unsubscribe of this.#unsubscribe) unsubscribe();
      for (const socket of this.#sockets) void socket.dispose();
    }
    if (how === "cut") for (const wire of this.#wires) wire.terminate();
    if (how !== "stay") for (const request of this.#requests) request.destroy();
    await until("every stream has ended", () => this.ended >= this.size, { timeoutMs: 30_000 });
  }

  #openSocket(client: PlatformClient, plan: CrowdPlan, variables: () => Record<string, unknown>): void {
    const wires = this.#wires;
    const socket = createClient({
      url: `${client.origin.replace("http", "ws")}/graphql`,
      webSocketImpl: class extends WebSocket {
        constructor(...args: ConstructorParameters<typeof WebSocket>) {
          super(...args);
          wires.push(this);
        }
      },
      connectionParams: { authorization: `Bearer ${client.key}` },
      retryAttempts: 0,
      lazy: true,
    });
    this.#sockets.push(socket);
    const end = () => void this.ended++;
    const fail = (error: unknown) => {
      end();
      this.#complain(error);
    };
    for (let n = 0; n < plan.perSocket; n++) {
      const sink = { next: () => {}, error: fail, complete: end };
      this.#unsubscribe.push(socket.subscribe({ query: plan.document, variables: variables() }, sink));
    }
  }

  #openEvents(client: PlatformClient, query: string, variables: Record<string, unknown>): void {
    const request = http.request(`${client.origin}/graphql/stream`, {
      method: "POST",
      agent: false,
      headers: { "content-type": "application/json", authorization: `Bearer ${client.key}` },
    });
    let over = false;
    const end = () => {
      if (!over) this.ended++;
      over = true;
    };
    request.on("response", (response) => {
      if (response.statusCode !== 200) this.#complain(`the stream answered ${response.statusCode}`);
      response.resume().on("close", end).on("error", end);
    });
    request.on("error", end).on("close", end);
    request.end(JSON.stringify({ query, variables }));
    this.#requests.push(request);
  }

  #complain(said: unknown): void {
    const complaint = inspect(said, { depth: 3, breakLength: Number.POSITIVE_INFINITY }).slice(0, COMPLAINT_LENGTH);
    this.complaints.set(complaint, (this.complaints.get(complaint) ?? 0) + 1);
  }
}

/** Streams that the platform holds open upstream, as it tells itself. */
export async function openStreams(client: PlatformClient): Promise<number> {
  const { body } = await client.send("GET", "/metrics");
  const found = /^nodus_open_followers\S* (\d+)$/m.exec(String(body));
  if (!found) throw new Error("/metrics does not tell nodus_open_followers");
  return Number(found[1]);
}
