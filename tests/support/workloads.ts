import { createHash, randomUUID } from "node:crypto";
import type { PlatformClient } from "./platform-client.ts";
import { until } from "./until.ts";

const CREATE = `mutation submit($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) { workload { id } }
}`;

const STATE = `query state($id: ID!) {
  workload(id: $id) {
    status reason message exitCode signal waitingReason waitingSince spendUsd settledAt resourcesReleasedAt
    stages { stageId status exitCode signal reason generation }
    placements {
      generation state outcome exitCode signal oom killedBy message note simulated isolation interruptTrigger
      logBytes logSha256 logTailLost logTruncated chargedUsd ranMs rateUsdPerHour
    }
  }
}`;

export const LOGS = `subscription logs($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) {
    cursor stageId generation offset data text complete end { totalBytes sha256 truncated tailLost }
  }
}`;

export const EVENTS = `subscription events($id: ID!, $after: Int) {
  workloadEvents(workloadId: $id, after: $after) { cursor complete event { seq type payload } }
}`;

/** The REST operations about one workload, whose id is in their path. */
export const OPERATIONS_ON_A_WORKLOAD = [
  "getWorkload",
  "cancelWorkload",
  "listWorkloadEvents",
  "getWorkloadLogs",
  "liveLogs",
  "listWorkloadOutputs",
  "downloadWorkloadOutput",
  "listWorkloadArtifacts",
  "getWorkloadLedger",
  "getWorkloadRouting",
  "listWorkloadRLEvents",
] as const;

/** A workload as the graph tells it; the members are those of the document above. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it member by member
export type WorkloadState = any;

export interface LogItem {
  cursor: string;
  generation: number | null;
  offset: number;
  data: string;
  text: string;
  complete: boolean;
  end: { totalBytes: number; sha256: string | null; truncated: boolean; tailLost: boolean } | null;
}

/** A workload that runs one shell script. */
export function script(text: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { source: { command: ["sh", "-c", text] }, ...more };
}

/** Submits over GraphQL; the workload's id. */
export async function submit(client: PlatformClient, workload: object, key: string = randomUUID()): Promise<string> {
  return (await client.query(CREATE, { workload, key })).createWorkload.workload.id;
}

export async function cancel(client: PlatformClient, id: string): Promise<void> {
  await client.query("mutation cancel($id: ID!) { cancelWorkload(input: { id: $id }) { status } }", { id });
}

export async function stateOf(client: PlatformClient, id: string): Promise<WorkloadState> {
  return (await client.query(STATE, { id })).workload;
}

/** Waits until the workload has one of the states. */
export function reaches(
  client: PlatformClient,
  id: string,
  states: readonly string[],
  timeoutMs = 30_000,
): Promise<WorkloadState> {
  return until(
    `${id} is ${states.join(" or ")}`,
    async () => {
      const state = await stateOf(client, id);
      if (states.includes(state.status)) return state;
      if (OVER.includes(state.status)) throw new Error(`${id} ended as ${JSON.stringify(state)}`);
      return null;
    },
    { timeoutMs, everyMs: 50 },
  );
}

const OVER = ["completed", "failed", "cancelled"];

/** Waits until the workload is over; its state then. */
export function ends(client: PlatformClient, id: string, timeoutMs = 30_000): Promise<WorkloadState> {
  return reaches(client, id, OVER, timeoutMs);
}

/** Waits until the workload is over, its resources are gone and its books are closed. */
export async function settles(client: PlatformClient, id: string, timeoutMs = 30_000): Promise<WorkloadState> {
  await ends(client, id, timeoutMs);
  return until(`${id} is settled`, async () => {
    const state = await stateOf(client, id);
    return state.settledAt ? state : null;
  });
}

/** Waits until the workload's log has the text. */
export function writes(client: PlatformClient, id: string, text: string, timeoutMs = 30_000): Promise<void> {
  const seen = async () => {
    let read = "";
    for await (const { workloadLogs } of client.overSocket(LOGS, { id })) {
      read += workloadLogs.text;
      if (read.includes(text)) return;
      if (workloadLogs.complete) throw new Error(`${id} ended after ${JSON.stringify(read)}`);
    }
  };
  return within(seen(), timeoutMs, `${id} writes ${text}`);
}

/** Rejects when something takes too long. */
export async function within<T>(work: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${timeoutMs} ms in vain: ${what}`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** All items of a stream that completes. */
export async function collect<T>(items: AsyncIterable<T>, timeoutMs = 30_000): Promise<T[]> {
  const all = async () => {
    const found: T[] = [];
    for await (const item of items) found.push(item);
    return found;
  };
  return within(all(), timeoutMs, "the stream completes");
}

export function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
