import { refusals } from "../../../infra/kernel/refusal.ts";

/** What loading an output again is refused for, beside what its workload refuses. */
export const LOAD = refusals({
  load_superseded: [
    409,
    "A later generation of the stage has been loaded already.",
    "Leave the table as it is; its rows are newer than this output.",
  ],
  sink_credential_gone: [
    409,
    "The credential that was pinned for this output is not there any more.",
    "Run the workload again with a connection for the secret's present version.",
  ],
});
