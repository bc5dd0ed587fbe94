import { randomUUID } from "node:crypto";
import type { Client } from "./client.ts";
import { followLogs } from "./logs.ts";
import { Patience } from "./patience.ts";
import { note } from "./progress.ts";

export interface SubmitOptions {
  name?: string;
  image?: string;
  asset?: string;
  /** Names and asset ids. */
  input?: [name: string, assetId: string][];
  /** Names and paths. */
  output?: [name: string, path: string][];
  gpu?: string;
  gpuCount?: string;
  cpu?: boolean;
  memoryGb?: number;
  vcpus?: number;
  /** US dollars. */
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

interface Created {
  createWorkload: { workload: { id: string; status: string }; replayed: boolean };
}

/** Submits a workload and prints its id on stdout; everything said to the person goes to stderr. */
export async function submit(client: Client, command: string[], options: SubmitOptions): Promise<void> {
  const key = options.key ?? randomUUID();
  const input = { idempotencyKey: key, workload: workloadOf(command, options) };
  const later = `whether it was accepted is not known, and the same command with --key ${key} makes no second workload`;
  const create = () => client.query<Created>(CREATE, { input });
  const { answer, isRepeated } = await new Patience({ later }).answerTo(create);
  const { workload, replayed } = answer.createWorkload;
  const { id, status } = workload;
  process.stdout.write(`${id}\n`);
  // After a lost answer the key may have been used by the request before.
  note(replayed && !isRepeated ? "This key was used before: the same workload." : "Accepted.");
  if (options.follow) await followLogs(client, id, status);
}

function workloadOf(command: string[], options: SubmitOptions): Record<string, unknown> {
  const source = { command, image: options.image, assetId: options.asset };
  const outputs = options.output && Object.fromEntries(options.output);
  return {
    name: options.name,
    ...(outputs ? { stages: [{ id: "main", source, outputs }] } : { source }),
    inputs: options.input?.map(([name, assetId]) => ({ name, assetId })),
    requirements: {
      computeClass: options.cpu ? "vm" : undefined,
      gpu: options.gpu,
      gpuCount: options.gpuCount === undefined ? undefined : Number(options.gpuCount),
      peakMemoryGb: options.memoryGb,
      vcpus: options.vcpus,
    },
    outcome: {
      maxCostUsd: options.maxCost === undefined ? undefined : Number(options.maxCost),
      completeBy: options.completeBy,
    },
    policy: { secretRefs: options.secret, egressAllow: options.allow },
  };
}
