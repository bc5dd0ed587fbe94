import { randomUUID } from "node:crypto";
import { type Client, ClientError } from "./client.ts";
import { followLogs } from "./logs.ts";
import { note } from "./progress.ts";

export interface SubmitOptions {
  name?: string;
  image?: string;
  asset?: string;
  input?: string[];
  output?: string[];
  gpu?: string;
  gpuCount?: string;
  cpu?: boolean;
  memoryGb?: string;
  vcpus?: string;
  maxCost?: string;
  completeBy?: string;
  secret?: string[];
  allow?: string[];
  key?: string;
  follow?: boolean;
}

const CREATE = `mutation submit($input: CreateWorkloadInput!) {
  createWorkload(input: $input) { workload { id status } replayed }
}`;

/** Submits a workload and prints its id on stdout; everything said to the person goes to stderr. */
export async function submit(client: Client, command: string[], options: SubmitOptions): Promise<void> {
  const input = { idempotencyKey: options.key ?? randomUUID(), workload: workloadOf(command, options) };
  const { createWorkload } = await client.query<{
    createWorkload: { workload: { id: string; status: string }; replayed: boolean };
  }>(CREATE, { input });
  const { id, status } = createWorkload.workload;
  process.stdout.write(`${id}\n`);
  note(createWorkload.replayed ? "This key was used before: the same workload." : "Accepted.");
  if (options.follow) await followLogs(client, id, status);
}

function workloadOf(command: string[], options: SubmitOptions): Record<string, unknown> {
  const source = { command, image: options.image, assetId: options.asset };
  const outputs = options.output && Object.fromEntries(options.output.map((pair) => split(pair, "--output")));
  return {
    name: options.name,
    ...(outputs ? { stages: [{ id: "main", source, outputs }] } : { source }),
    inputs: options.input?.map((pair) => {
      const [name, assetId] = split(pair, "--input");
      return { name, assetId };
    }),
    requirements: {
      computeClass: options.cpu ? "vm" : undefined,
      gpu: options.gpu,
      gpuCount: number(options.gpuCount, "--gpu-count"),
      peakMemoryGb: number(options.memoryGb, "--memory-gb"),
      vcpus: number(options.vcpus, "--vcpus"),
    },
    outcome: { maxCostUsd: number(options.maxCost, "--max-cost"), completeBy: options.completeBy },
    policy: { secretRefs: options.secret, egressAllow: options.allow },
  };
}

function number(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new ClientError(`${option} must be a number, not "${text}".`);
  return value;
}

function split(pair: string, option: string): [string, string] {
  const at = pair.indexOf("=");
  if (at < 1) throw new ClientError(`${option} wants NAME=VALUE, not "${pair}".`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}
