import { createHash, type Hash } from "node:crypto";
import http from "node:http";
import { createParser } from "eventsource-parser";
import WebSocket from "ws";
import type { PlatformClient } from "./platform-client.ts";

const BYTES = `subscription bytes($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) { cursor data complete }
}`;

interface Item {
  cursor: string;
  data: string;
  complete: boolean;
}

/** Somebody who reads a log, and stops reading in the middle without going away. */
export abstract class LogReader {
  /** Bytes that came so far, and their digest once the log is complete. */
  bytes = 0;
  readonly digest: Promise<string>;
  protected readonly hash: Hash = createHash("sha256");
  protected readonly client: PlatformClient;
  protected readonly id: string;
  #end: (digest: string) => void = () => {};
  #fail: (error: Error) => void = () => {};
  #stallAt: number;

  /** @param stallAt after so many bytes nothing more is read until `goOn` */
  constructor(client: PlatformClient, id: string, stallAt = Number.POSITIVE_INFINITY) {
    this.client = client;
    this.id = id;
    this.#stallAt = stallAt;
    this.digest = new Promise((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
    });
    this.digest.catch(() => {}); // whoever awaits it has the error
  }

  goOn(): void {
    this.#stallAt = Number.POSITIVE_INFINITY;
    this.resume();
  }

  protected abstract stall(): void;
  protected abstract resume(): void;

  protected take(bytes: Buffer): void {
    this.bytes += bytes.length;
    this.hash.update(bytes);
    if (this.bytes >= this.#stallAt) this.stall();
  }

  protected finish(): void {
    this.#end(this.hash.digest("hex"));
  }

  protected fail(error: Error): void {
    this.#fail(error);
  }
}

/** Over a WebSocket; one that is cut off while it is stalled comes back with the last cursor that it saw. */
export class SocketReader extends LogReader {
  #socket: WebSocket | null = null;
  #after = "";
  #stalled = false;
  /** How often it was cut off. */
  cuts = 0;

  open(): this {
    const socket = new WebSocket(`${this.client.origin.replace("http", "ws")}/graphql`, "graphql-transport-ws");
    this.#socket = socket;
    const send = (message: object) => socket.send(JSON.stringify(message));
    let over = false;
    socket.on("open", () => send({ type: "connection_init", payload: { authorization: `Bearer ${this.client.key}` } }));
    socket.on("message", (text) => {
      const { type, payload } = JSON.parse(String(text));
      if (type === "connection_ack")
        send({ id: "1", type: "subscribe", payload: { query: BYTES, variables: { id: this.id, after: this.#after } } });
      if (type === "error") this.fail(new Error(JSON.stringify(payload)));
      if (type !== "next") return;
      const item = payload.data.workloadLogs as Item;
      this.#after = item.cursor;
      this.take(Buffer.from(item.data, "base64"));
      over = item.complete;
      if (over) this.#finished();
    });
    socket.on("error", () => {}); // it is closed then
    socket.on("close", () => {
      if (over || this.#socket === null) return;
      this.cuts++;
      if (!this.#stalled) this.open();
    });
    return this;
  }

  /** Cuts the connection. */
  leave(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.terminate();
  }

  protected stall(): void {
    this.#stalled = true;
    this.#socket?.pause();
  }

  protected resume(): void {
    this.#stalled = false;
    if (this.#socket?.readyState === WebSocket.CLOSED) this.open();
    else this.#socket?.resume();
  }

  #finished(): void {
    this.leave();
    this.finish();
  }
}

/** Over one HTTP answer: server-sent events, or the log as text. */
export class HttpReader extends LogReader {
  #response: http.IncomingMessage | null = null;

  events(): this {
    const parser = createParser({
      onEvent: ({ event, data }) => {
        if (event === "complete") return this.finish();
        const { data: answer, errors } = JSON.parse(data);
        if (errors) return this.fail(new Error(JSON.stringify(errors)));
        this.take(Buffer.from((answer.workloadLogs as Item).data, "base64"));
      },
    });
    const body = JSON.stringify({ query: BYTES, variables: { id: this.id, after: "" } });
    this.#ask("POST", "/graphql/stream", (bytes) => parser.feed(bytes.toString("latin1")), body); // base64 is ASCII
    return this;
  }

  text(): this {
    this.#ask("GET", `/v1/workloads/${this.id}/logs`, (bytes) => this.take(bytes)).then(() => this.finish());
    return this;
  }

  protected stall(): void {
    this.#response?.pause();
  }

  protected resume(): void {
    this.#response?.resume();
  }

  #ask(method: string, url: string, take: (bytes: Buffer) => void, body?: string): Promise<void> {
    const headers = { authorization: `Bearer ${this.client.key}`, "content-type": "application/json" };
    const request = http.request(`${this.client.origin}${url}`, { method, headers, agent: false });
    request.end(body);
    return new Promise((resolve) => {
      request.on("error", (error) => this.fail(error));
      request.on("response", (response) => {
        this.#response = response;
        if (response.statusCode !== 200) this.fail(new Error(`the answer is ${response.statusCode}`));
        response.on("data", take).on("end", resolve);
        response.on("error", (error) => this.fail(error));
      });
    });
  }
}
