/** A workload's request in wire spelling, as accepted: defaults filled in, members that mean nothing left out. */
export interface WorkloadPayload {
  name?: string;
  source?: Source;
  framework?: "" | "train_eval";
  stages?: StagePayload[] | null;
  inputs?: WorkloadInput[] | null;
  requirements: Requirements;
  outcome: { max_cost_usd?: number; complete_by?: string };
  policy: { data_regions?: string[] | null; secret_refs?: string[]; egress_allow?: string[] };
  continuity: Continuity;
  optimization?: string;
  placement?: { pool: string } | { prefer: "any" };
  connections?: string[];
  sweep_id?: string;
  rl?: Record<string, unknown> | null;
}

export interface Source {
  image?: string;
  command?: string[] | null;
  asset_id?: string;
}

export interface Requirements {
  compute_class?: "" | "vm" | "accelerator";
  gpu?: string;
  gpu_count?: 1 | 2 | 4 | 8;
  gpu_interconnect?: "" | "any";
  peak_memory_gb?: number;
  vcpus?: number;
  disk_gb?: number;
  model?: string;
  notes?: string;
  dataset_bytes?: number;
  expected_runtime_hours?: number;
  optimization?: string;
}

export interface Continuity {
  mode?: "" | "checkpointed" | "restartable" | "ephemeral";
  resume_on_interruption?: boolean;
  checkpoint_paths?: string[];
  integration?: "" | "none" | "auto" | "hf-trainer-v1";
}

export interface WorkloadInput {
  name: string;
  asset_id?: string;
  uri?: "";
  cache?: boolean;
  bucket?: Record<string, unknown>;
}

export interface StagePayload {
  id: string;
  source: Source;
  inputs?: { name: string; from_stage: string; from_output: string }[] | null;
  continuity?: Continuity;
  requirements?: Requirements;
  depends_on?: string[] | null;
  total_units?: number;
  outputs?: Record<string, string | { path: string; sink?: { connection: string; table: string } }> | null;
}
