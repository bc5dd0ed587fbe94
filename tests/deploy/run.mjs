// `npm run test:deploy`: the image, and every role in a container, as infra/deploy/compose.yaml describes them.
import path from "node:path";
import { handOver, pinnedNode } from "../../infra/deploy/hand-over.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(import.meta.dirname, "deploy.ts");
process.exitCode = await handOver(pinnedNode(root), ["--no-warnings", program, ...process.argv.slice(2)], {
  cwd: root,
});
