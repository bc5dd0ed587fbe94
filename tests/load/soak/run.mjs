// `npm run soak -- --hours 2 --seed 7`: lets a platform be killed and another one work for hours, and prints a summary.
import path from "node:path";
import { parseArgs } from "node:util";
import { handOver, pinnedNode } from "../../../infra/deploy/hand-over.mjs";

const root = path.resolve(import.meta.dirname, "../../..");
const { values } = parseArgs({
  options: {
    hours: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    streams: { type: "string", default: "10000" },
  },
});
const hours = Number(values.hours);
const seed = Number(values.seed);
const streams = Number(values.streams);
if (!(hours > 0) || !Number.isInteger(seed) || !Number.isInteger(streams)) {
  process.stderr.write("usage: npm run soak -- [--hours 1.5] [--seed 7] [--streams 10000]\n");
  process.exit(2);
}
const runner = path.join(root, "node_modules", "vitest", "vitest.mjs");
const config = path.join("tests", "load", "soak", "vitest.config.ts");
process.exitCode = await handOver(pinnedNode(root), [runner, "run", "--config", config, "--reporter=dot"], {
  cwd: root,
  env: {
    ...process.env,
    NODUS_SOAK_HOURS: String(hours),
    NODUS_SOAK_SEED: String(seed),
    NODUS_SOAK_STREAMS: String(streams),
    PATH: `${path.join(root, "node_modules", ".bin")}:${process.env.PATH}`,
  },
});
