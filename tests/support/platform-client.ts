import { createParser } from "eventsource-parser";
import { type Client, createClient } from "graphql-ws";
import WebSocket from "ws";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { readContract } from "../../rest-compat/contract.ts";
import { checkResponse } from "../contract/check-response.ts";

const contract = readContract(projectFile("schema", "contract", "openapi.json"));

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into member by member, and their shapes are checked elsewhere
type Open = any;

export interface GraphError {
  message: string;
  path?: (string | number)[];
  extensions: { code: string; field?: string; fix?: string } & Record<string, unknown>;
}

export interface GraphAnswer {
  status: number;
  data: Open;
  errors: GraphError[];
}

export interface RestAsk {
  /** Values of the path, by their names in the contract. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  /** Bytes and texts are sent as they are, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface RestAnswer {
  status: number;
  headers: Headers;
  /** Parsed JSON; otherwise the text. */
  body: Open;
  bytes: Buffer;
}

/** A user of a platform: everything goes over the network, with one API key or none. */
export class PlatformClient {
  readonly origin: string;
  readonly key: string | null;

  constructor(origin: string, key: string | null) {
    this.origin = origin;
    this.key = key;
  }

  as(key: string | null): PlatformClient {
    return new PlatformClient(this.origin, key);
  }

  async graphql(query: string, variables: Record<string, unknown> = {}): Promise<GraphAnswer> {
    const response = await fetch(`${this.origin}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", ...this.#authorization() },
      body: JSON.stringify({ query, variables }),
    });
    const { data = null, errors = [] } = (await response.json()) as Partial<GraphAnswer>;
    return { status: response.status, data, errors };
  }

  /** The data of an operation that must not fail. */
  async query(query: string, variables: Record<string, unknown> = {}): Promise<Open> {
    const { data, errors } = await this.graphql(query, variables);
    if (errors.length > 0) throw new Error(errors.map(({ message, path }) => `${path}: ${message}`).join("\n"));
    return data;
  }

  /** A documented operation; its answer is checked against the contract. */
  async rest(operationId: string, ask: RestAsk = {}): Promise<RestAnswer> {
    const operation = contract.operations.get(operationId);
    if (!operation) throw new Error(`the contract has no operation ${operationId}`);
    const { path = {}, query = {} } = ask;
    const url = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ""));
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    const answer = await this.send(operation.method.toUpperCase(), `${url}${search.size > 0 ? `?${search}` : ""}`, ask);
    checkResponse(operationId, answer.status, answer.headers, answer.body);
    return answer;
  }

  /** Any request, unchecked. */
  async send(method: string, url: string, { body, headers = {} }: RestAsk = {}): Promise<RestAnswer> {
    const raw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(`${this.origin}${url}`, {
      method,
      headers: { ...(raw ? {} : { "content-type": "application/json" }), ...this.#authorization(), ...headers },
      body: (raw ? body : JSON.stringify(body)) as BodyInit,
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = response.headers.get("content-type")?.startsWith("application/json") && bytes.length > 0;
    const read = isJson ? JSON.parse(bytes.toString()) : bytes.toString();
    return { status: response.status, headers: response.headers, body: read, bytes };
  }

  /** A connection that carries any number of subscriptions. */
  socket(): Client {
    return createClient({
      url: `${this.origin.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: this.#authorization(),
      retryAttempts: 0,
    });
  }

  /** Items of a subscription over a WebSocket of its own, until it completes. */
  async *overSocket(query: string, variables: Record<string, unknown> = {}): AsyncGenerator<Open> {
    const client = this.socket();
    try {
      for await (const result of client.iterate<Open>({ query, variables }))
        yield dataOf(result as Partial<GraphAnswer>);
    } finally {
      await client.dispose();
    }
  }

  /** Items of a subscription over server-sent events, until it completes. */
  async *overEvents(query: string, variables: Record<string, unknown> = {}): AsyncGenerator<Open> {
    const abort = new AbortController();
    const response = await fetch(`${this.origin}/graphql/stream`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...this.#authorization() },
      body: JSON.stringify({ query, variables }),
      signal: abort.signal,
    });
    const { status } = response;
    if (status !== 200)
      throw Object.assign(new Error(`the stream answered ${status}: ${await response.text()}`), { status });
    const waiting: { event?: string | undefined; data: string }[] = [];
    const parser = createParser({ onEvent: (event) => waiting.push(event) });
    const decoder = new TextDecoder();
    try {
      for await (const bytes of response.body!) {
        parser.feed(decoder.decode(bytes, { stream: true }));
        for (const { event, data } of waiting.splice(0)) {
          if (event === "complete") return;
          yield dataOf(JSON.parse(data) as Partial<GraphAnswer>);
        }
      }
      throw new Error("the stream broke off");
    } finally {
      abort.abort();
    }
  }

  #authorization(): Record<string, string> {
    return this.key === null ? {} : { authorization: `Bearer ${this.key}` };
  }
}

/** The data of one item; its first error is thrown with its code and its status, null where it has none. */
function dataOf({ data, errors = [] }: Partial<GraphAnswer>): Open {
  const [first] = errors;
  if (first) throw Object.assign(new Error(first.message), statusOf(first));
  return data;
}

function statusOf({ extensions }: GraphError) {
  return { code: extensions?.code, status: extensions?.status ?? null };
}
