import { parseArgs } from "node:util";
import { closeInheritedDescriptors } from "./inherited-descriptors.ts";
import { runHostAgent } from "./run.ts";

/** Entry of a host agent's own process: `main --folder /absolute [--allow-unisolated] [--bubblewrap bwrap] [--idle-exit-ms 600000] [--version v]`. */
const { values } = parseArgs({
  options: {
    folder: { type: "string" },
    "allow-unisolated": { type: "boolean", default: false },
    bubblewrap: { type: "string", default: "bwrap" },
    "idle-exit-ms": { type: "string", default: "600000" },
    version: { type: "string", default: "dev" },
  },
});
if (!values.folder?.startsWith("/")) throw new Error("--folder must be an absolute path");
closeInheritedDescriptors();
// Commands inherit it; what is private here is created with a mode of its own.
process.umask(0o022);
const idleExitMs = Number(values["idle-exit-ms"]);
await runHostAgent({
  folder: values.folder,
  allowUnisolated: values["allow-unisolated"],
  bubblewrap: values.bubblewrap,
  version: values.version,
  idleExitMs: idleExitMs > 0 ? idleExitMs : null,
});
process.exit(0);
