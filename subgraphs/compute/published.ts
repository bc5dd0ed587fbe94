import type { Queryer, Tx } from "../../infra/db/database.ts";
import type { JsonValue } from "../../infra/kernel/json-value.ts";

/** What other domains may ask of compute. */
export interface WorkloadPort {
  /** True when the tenant has such a workload. */
  exists(q: Queryer, tenantId: string, workloadId: string): Promise<boolean>;
}

/** A saved output that its stage declared a table for. */
export interface SinkOutput {
  stageId: string;
  /** The generation that saved it. */
  generation: number;
  name: string;
  /** Where the run left it, as declared. */
  path: string;
  /** Address of its bytes in the object store of results, in hex. */
  sha256: string;
  bytes: number;
  /** It is an archive of a folder. */
  isTar: boolean;
  connectionId: string;
  /** Version of the credential that was pinned at admission. */
  secretId: string;
  secretVersion: number;
  /** In lower case. */
  table: string;
}

/** One generation of a stage, for readers outside the platform. */
export interface RunFacts {
  /** The workload's. */
  status: string;
  /** Family of the accelerator; null on a CPU. */
  gpu: string | null;
  gpuCount: number;
  region: string;
  /** What the generation was charged; null until that is settled. */
  chargedMicros: bigint | null;
  startedAt: Date | null;
  endedAt: Date | null;
  sweepId: string | null;
  /** Nothing of this will change any more. */
  final: boolean;
}

/** A generation of a workload's stage. */
export interface RunName {
  tenantId: string;
  workloadId: string;
  stageId: string;
  generation: number;
}

/** What runs leave behind, for whoever takes it further. */
export interface RunResultsPort {
  /** Outputs with a table that a generation saved, in order of their names. */
  sinkOutputs(q: Queryer, run: RunName): Promise<SinkOutput[]>;
  /**
   * The output of the name that was saved last. Refused as `not_found`, `output_not_found` (404), `ambiguous_output`,
   * `output_has_no_sink` (409) or `output_gone` (410); `stageId` is needed where several stages have the name.
   */
  sinkOutput(
    q: Queryer,
    ask: { tenantId: string; workloadId: string; name: string; stageId: string | null },
  ): Promise<SinkOutput>;
  /** Null when the generation is not known any more. */
  facts(q: Queryer, run: RunName): Promise<RunFacts | null>;
  /** Of these workloads those that are forgotten but for their events and ledger: no output of them is there any more. */
  forgotten(q: Queryer, workloadIds: readonly string[]): Promise<string[]>;
  /** Takes the workload's lock, which comes before the locks of what hangs on it; refused as `not_found`. */
  lock(tx: Tx, ask: { tenantId: string; workloadId: string }): Promise<void>;
  /** Appends to the workload's own events, whose lock the transaction has. Payloads are in wire spelling. */
  appendEvent(
    tx: Tx,
    event: { workloadId: string; type: string; payload: Record<string, JsonValue>; now: Date },
  ): Promise<void>;
}
