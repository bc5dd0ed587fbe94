// What `npm start`, `npm test` and `npm run bench` call, on whatever Node (20 or newer) the machine has:
// installs what is missing, builds, and hands over to the pinned Node.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./infra/deploy/build.mjs";
import { handOver, pinnedNode } from "./infra/deploy/hand-over.mjs";
import { installPackages } from "./infra/deploy/install.mjs";
import { checkMachine, Unsupported } from "./infra/deploy/machine.mjs";
import { installBubblewrap } from "./infra/deploy/system-packages.mjs";
import { runTests } from "./infra/deploy/test-run.mjs";

const root = path.dirname(fileURLToPath(import.meta.url));
const say = (line) => process.stderr.write(`${line}\n`);
const [command = "up", ...rest] = process.argv.slice(2);

try {
  process.exitCode = await run();
} catch (error) {
  say(error instanceof Unsupported ? error.message : `nodus could not start: ${error.message}`);
  process.exitCode = 1;
}

async function run() {
  checkMachine();
  await installPackages(root, say);
  // Help is the program's to give, also of what is done here.
  const asked = rest.includes("--help") || rest.includes("-h") ? null : command;
  if (asked === "install") return 0;
  await build(root, say);
  if (asked === "build") return 0;
  if (asked === "up" || asked === "test") await installBubblewrap(say);
  if (asked === "test") return await runTests(root, rest);
  const program = path.join(root, "dist", "nodus.js");
  // Wherever it is called from, every command means the same data folder: .nodus beside this file unless told otherwise.
  return await handOver(pinnedNode(root), ["--enable-source-maps", program, command, ...rest], { cwd: root });
}
