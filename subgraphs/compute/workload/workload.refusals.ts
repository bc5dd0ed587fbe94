import { refusals } from "../../../infra/kernel/refusal.ts";

/** What a workload, or a request about one, is refused for. */
export const WORKLOAD = refusals({
  missing_source: [
    400,
    "The workload says nothing to run.",
    "Give source.image and source.command, stages, or framework train_eval with source.command.",
  ],
  source_conflict: [400, "The workload says in more than one way what to run.", "Give either a source or stages."],
  invalid_source: [400, "The source is not acceptable.", "Correct the member that the message names."],
  invalid_compute_class: [400, "The compute class is not acceptable.", "Use accelerator, or vm without a GPU."],
  invalid_requirements: [400, "A requirement is not acceptable.", "Use finite numbers, zero or more."],
  invalid_gpu: [400, "The GPU family is not known.", "Use a family such as H100 or RTX 4090, or leave gpu out."],
  invalid_gpu_count: [400, "The number of GPUs is not acceptable.", "Use 1, 2, 4 or 8."],
  unsupported_interconnect: [400, "No GPU interconnect can be promised.", "Leave gpu_interconnect out, or send any."],
  invalid_continuity_mode: [400, "The continuity mode is not known.", "Use checkpointed, restartable or ephemeral."],
  invalid_checkpoint_path: [
    400,
    "A checkpoint path is not acceptable.",
    "Use up to 64 relative paths of at most 512 bytes with / between their parts.",
  ],
  invalid_integration: [
    400,
    "The checkpoint integration is not acceptable.",
    "Leave integration out, or give auto or hf-trainer-v1 with checkpointed mode, the state folder and source.asset_id.",
  ],
  invalid_complete_by: [
    400,
    "The deadline is not acceptable.",
    "Use an RFC 3339 time in the future, such as 2030-12-01T18:00:00Z.",
  ],
  invalid_max_cost: [
    400,
    "The spending limit is not acceptable.",
    "Use an amount of at least one micro-dollar, or leave it out for no limit of its own.",
  ],
  max_cost_required: [400, "This needs a spending limit.", "Set outcome.max_cost_usd to more than zero."],
  invalid_policy: [400, "The policy is not acceptable.", "Correct the member that the message names."],
  invalid_egress_host: [
    400,
    "An egress host is not acceptable.",
    "List exact host names, without scheme, port, path or wildcard.",
  ],
  invalid_secret_ref: [
    400,
    "A secret reference is not acceptable.",
    "List each name once, as the secret was put: a letter or _ followed by letters, digits or _.",
  ],
  invalid_input: [
    400,
    "An input is not acceptable.",
    "Give each of at most eight inputs a name of its own and one asset_id.",
  ],
  input_uri_unsupported: [
    400,
    "Inputs are not fetched from a URI.",
    "Import the data as an asset first and give its asset_id.",
  ],
  invalid_output: [
    400,
    "An output is not acceptable.",
    "Use a portable name and a relative path with / between its parts.",
  ],
  duplicate_sink_target: [
    400,
    "Two outputs of one stage go to the same table.",
    "Give each output a table of its own.",
  ],
  invalid_stage_graph: [
    400,
    "The stages do not form an order.",
    "Use unique ids and depend on other stages without a circle.",
  ],
  stages_unsupported: [
    400,
    "Workloads of several stages are not part of this release.",
    "Submit one workload per stage, or run the steps in one command.",
  ],
  invalid_placement: [400, "The placement is not acceptable.", 'Give either a pool or {"prefer": "any"}.'],
  invalid_connection: [400, "The connection is not acceptable.", "Name at most one connection by its name or id."],
  invalid_rl: [400, "The rl object is not acceptable.", "Correct the member that the message names."],
  pool_not_found: [400, "The team has no such pool.", "Name a pool of your team, or leave placement out."],
  pool_unavailable: [
    409,
    "The pool has no host that takes workloads.",
    "Enroll a host for execution, or leave placement out.",
  ],
  preparation_unavailable: [
    409,
    "Preparing a source for managed checkpoints is switched off here.",
    "Leave continuity.integration out and save to NODUS_CHECKPOINT_DIR yourself.",
  ],
  isolated_execution_unavailable: [
    409,
    "Secrets, live connections and egress rules need isolated execution, which nothing here offers now.",
    "Leave secret_refs, connections and egress_allow out, or have an operator add capacity that isolates.",
  ],
  log_not_found: [
    404,
    "There is no log to read.",
    "Read it once the command has run, or name a stage and generation that exist.",
  ],
  output_not_found: [404, "There is no such output.", "List the workload's outputs."],
  ambiguous_output: [409, "Several stages have an output of this name.", "Name the stage as well."],
  output_has_no_sink: [
    409,
    "The output was not declared with a table.",
    "Declare the output with a sink in the next workload, or download it.",
  ],
  output_gone: [410, "The output is kept no longer.", "Run the workload again, and fetch outputs within their time."],
});
