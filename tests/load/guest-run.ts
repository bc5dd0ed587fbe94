import { randomUUID } from "node:crypto";
import { type Client, createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { BENCH_KEY, type Served } from "./bench-place.ts";

const CREATE = `mutation submit($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) { workload { id } }
}`;
const LOGS = `subscription logs($id: ID!) {
  workloadLogs(workloadId: $id) { offset data complete end { totalBytes } }
}`;

/** Some bytes of a run's output, with the time at which they were here. */
export interface Arrival {
  readonly bytes: Buffer;
  /** What the machine's clock said then. */
  readonly wallMs: number;
}

/** A client of the platform as a user has it: HTTP for questions, one WebSocket for streams. */
export class PlatformUser {
  readonly #origin: string;
  readonly #socket: Client;

  constructor({ origin }: Served) {
    this.#origin = origin;
    this.#socket = connect(origin);
  }

  /** Submits a shell script; the workload's id. `more` is put over the request. */
  async submit(script: string, more: object = {}): Promise<string> {
    const workload = { source: { command: ["sh", "-c", script] }, ...more };
    const { createWorkload } = await this.ask<{ createWorkload: { workload: { id: string } } }>(CREATE, {
      ...{ workload, key: randomUUID() },
    });
    return createWorkload.workload.id;
  }

  async ask<T>(query: string, variables: Record<string, unknown>): Promise<T> {
    const answer = await fetch(`${this.#origin}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${BENCH_KEY}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await answer.json()) as { data: T; errors?: { message: string }[] };
    if (errors?.[0]) throw new Error(errors[0].message);
    return data;
  }

  /** A workload's output as it comes, until it is complete. */
  async *output(id: string): AsyncGenerator<Arrival> {
    let expected = 0;
    for await (const { data, errors } of this.#socket.iterate<LogData>({ query: LOGS, variables: { id } })) {
      if (errors?.[0]) throw new Error(errors[0].message);
      const item = data!.workloadLogs;
      if (item.offset !== expected) throw new Error(`byte ${item.offset} came where ${expected} was due`);
      const bytes = Buffer.from(item.data, "base64");
      expected += bytes.length;
      if (bytes.length > 0) yield { bytes, wallMs: wallNowMs() };
      if (item.complete) return;
    }
  }

  close(): Promise<void> {
    return Promise.resolve(this.#socket.dispose());
  }
}

interface LogData {
  [name: string]: unknown;
  workloadLogs: { offset: number; data: string; complete: boolean; end: { totalBytes: number } | null };
}

/** A GraphQL-over-WebSocket client with the bench's key, or another one. */
export function connect(origin: string, key = BENCH_KEY): Client {
  return createClient({
    url: `${origin.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${key}` },
    retryAttempts: 0,
    lazyCloseTimeout: 60_000, // one socket for streams that follow each other
  });
}

/** The machine's clock with the fraction of a millisecond. */
export function wallNowMs(): number {
  return performance.timeOrigin + performance.now();
}
