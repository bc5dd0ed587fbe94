import { createHash, randomBytes } from "node:crypto";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type {
  Allowance,
  ExitRecord,
  HostFrame,
  IntakeFrame,
  OrderSpec,
  RunnerRecord,
  StagedObject,
} from "../protocol.ts";

/** What intake knows of one order. */
export class DoubleOrder {
  readonly spec: OrderSpec;
  readonly token = randomBytes(16).toString("hex");
  readonly session = randomBytes(16).toString("hex");
  readonly secrets: Record<string, string>;
  readonly records: RunnerRecord[] = [];
  allowance: Allowance = { want: "run", leaseMs: 90_000, fundedRunMs: null, deadlineMs: null };
  fenced = false;
  /** Refuses the next frame with this code, as a platform does whose database is away. */
  refuseNext: "retry" | "bad_frame" | null = null;
  refusals = 0;
  socket: WebSocket | null = null;
  beats = 0;
  /** As the last beat told. */
  usage: { cpuMs: number; memoryBytes: number; diskBytes: number } | null = null;
  /** Records that came again although they had been acknowledged or applied. */
  repeats = 0;
  receivedAtMs: number[] = [];

  constructor(spec: OrderSpec, secrets: Record<string, string>) {
    this.spec = spec;
    this.secrets = secrets;
  }

  get log(): Buffer {
    return Buffer.concat(
      this.records.flatMap((record) => (record.type === "log" ? [Buffer.from(record.data, "base64")] : [])),
    );
  }

  get exit(): ExitRecord | null {
    return (this.records.find((record) => record.type === "exit") as ExitRecord | undefined) ?? null;
  }

  get ended(): boolean {
    return this.records.some((record) => record.type === "end");
  }

  of<T extends RunnerRecord["type"]>(type: T): Extract<RunnerRecord, { type: T }>[] {
    return this.records.filter((record) => record.type === type) as Extract<RunnerRecord, { type: T }>[];
  }
}

/**
 * Intake's side of the runner protocol in memory, for tests of the runner. It is a real server on a real port; `stop`
 * and `start` are a platform that is killed and comes back with what it had committed.
 */
export class IntakeDouble {
  readonly orders = new Map<string, DoubleOrder>();
  readonly objects = new Map<string, Buffer>();
  /** Stops acknowledging while set, as a platform does whose database hangs. */
  silent = false;
  /** Sends objects so slowly that they never arrive. */
  slowObjects = false;
  /** Breaks this many object transfers in the middle, as a platform does that is killed. */
  brokenTransfers = 0;
  #server: http.Server | null = null;
  #sockets: WebSocketServer | null = null;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/runner/v1`;
  }

  async start(): Promise<void> {
    const server = http.createServer((request, response) => void this.#http(request, response));
    const sockets = new WebSocketServer({ server, path: "/runner/v1/stream" });
    sockets.on("connection", (socket) => {
      socket.on("error", () => socket.terminate());
      socket.on("message", (data) => this.#frame(socket, JSON.parse(String(data)) as HostFrame));
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#sockets = sockets;
  }

  async stop(): Promise<void> {
    for (const client of this.#sockets?.clients ?? []) client.terminate();
    this.#server?.closeAllConnections();
    await new Promise<void>((resolve) => this.#server?.close(() => resolve()) ?? resolve());
    this.#server = null;
  }

  order(spec: OrderSpec, secrets: Record<string, string> = {}): DoubleOrder {
    const order = new DoubleOrder(spec, secrets);
    this.orders.set(spec.orderId, order);
    return order;
  }

  object(name: string, content: Buffer, format: StagedObject["format"]): StagedObject {
    const sha256 = createHash("sha256").update(content).digest("hex");
    this.objects.set(sha256, content);
    return { sha256, bytes: content.length, format, name };
  }

  /** Tells the host a new allowance without being asked. */
  want(order: DoubleOrder, change: Partial<Allowance>): void {
    order.allowance = { ...order.allowance, ...change };
    if (order.socket)
      this.#say(order.socket, { type: "want", orderId: order.spec.orderId, beat: null, allowance: order.allowance });
  }

  #frame(socket: WebSocket, frame: HostFrame): void {
    const { orderId } = frame;
    const order = this.orders.get(orderId);
    const begins = frame.type === "open" || frame.type === "resume";
    const known = order && (frame.type === "open" ? frame.token === order.token : frame.session === order.session);
    if (order && known && !order.fenced) {
      if (order.refuseNext !== null || (!begins && order.socket !== socket)) {
        const code = order.refuseNext ?? "bad_frame";
        order.refuseNext = null;
        order.socket = null;
        this.#say(socket, { type: "refused", orderId, code, message: "open or resume first" });
        order.refusals++;
        return;
      }
      order.socket = socket;
      const answer = this.#answer(order, frame);
      if (answer) this.#say(socket, answer);
    } else {
      const code = !order ? "unknown" : order.fenced ? "fenced" : "bad_token";
      this.#say(socket, { type: "refused", orderId, code, message: "not this one" });
    }
  }

  #answer(order: DoubleOrder, frame: HostFrame): IntakeFrame | null {
    const { orderId } = frame;
    const { spec, session, secrets, allowance } = order;
    if (frame.type === "open") {
      return { type: "opened", orderId, session, spec, secrets, redact: Object.values(secrets), allowance };
    }
    if (frame.type === "resume") return { type: "resumed", orderId, ackSeq: order.records.length, allowance };
    if (frame.type === "beat") {
      order.beats++;
      order.usage = frame.usage;
      return this.silent ? null : { type: "want", orderId, beat: frame.beat, allowance };
    }
    return this.silent ? null : this.#records(order, frame.records);
  }

  #records(order: DoubleOrder, records: RunnerRecord[]): IntakeFrame {
    for (const record of records) {
      if (record.seq <= order.records.length) order.repeats++;
      else if (record.seq > order.records.length + 1)
        throw new Error(`gap before record ${record.seq} of ${order.spec.orderId}`);
      else {
        order.records.push(record);
        order.receivedAtMs.push(Date.now());
      }
    }
    return { type: "ack", orderId: order.spec.orderId, seq: order.records.length };
  }

  async #http(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, orderId = "", sha256] =
      /^\/runner\/v1\/orders\/([^/]+)\/objects(?:\/([0-9a-f]{64}))?$/.exec(request.url ?? "") ?? [];
    const order = this.orders.get(decodeURIComponent(orderId));
    if (!order || request.headers.authorization !== `Bearer ${order.session}`)
      return void response.writeHead(404).end();
    if (request.method === "GET") {
      const content = this.objects.get(sha256 ?? "");
      if (this.brokenTransfers > 0 && content) {
        this.brokenTransfers--;
        response.writeHead(200, { "content-length": content.length }).write(content.subarray(0, content.length / 2));
        return void setTimeout(() => response.destroy(), 20);
      }
      if (this.slowObjects) return void response.writeHead(200).write("a");
      return void (content ? response.writeHead(200).end(content) : response.writeHead(404).end());
    }
    if (this.brokenTransfers > 0) {
      this.brokenTransfers--;
      return void request.once("data", () => request.destroy());
    }
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part as Buffer);
    } catch {
      return; // the host went away in mid-upload and tries again
    }
    const stored = this.object("", Buffer.concat(parts), "file");
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ sha256: stored.sha256, bytes: stored.bytes }));
  }

  #say(socket: WebSocket, frame: IntakeFrame): void {
    socket.send(JSON.stringify(frame));
  }
}
