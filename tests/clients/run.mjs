// `npm run test:clients`: published Python clients and made-up requests against a platform that is started for them.
import path from "node:path";
import { handOver, pinnedNode } from "../../infra/deploy/hand-over.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(import.meta.dirname, "clients.ts");
process.exitCode = await handOver(pinnedNode(root), ["--no-warnings", program, ...process.argv.slice(2)], {
  cwd: root,
});
