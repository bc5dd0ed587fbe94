// `npm run soak -- --hours 2 --seed 7`: lets platforms be killed and another one work for hours, and prints a summary.
import path from "node:path";
import { parseArgs } from "node:util";
import { handOver, pinnedNode } from "../../../infra/deploy/hand-over.mjs";

const USAGE = `usage: npm run soak -- [--hours 1.5] [--seed 7] [--streams 10000] [--layout "separate processes"]
       npm run soak -- --round "host agent at provisioning" [--times 25] [--seed 7] [--layout "one process"]
`;

const root = path.resolve(import.meta.dirname, "../../..");
const values = optionsGiven();
const options = {
  // A round that is repeated ends by its count, unless it was told a time.
  hours: Number(values.hours ?? (values.round === undefined ? 1 : 24)),
  seed: Number(values.seed),
  streams: Number(values.streams),
  layout: values.layout ?? null,
  round: values.round ?? null,
  times: Number(values.times),
};
const whole = [options.seed, options.streams, options.times];
if (!(options.hours > 0) || !whole.every((number) => Number.isInteger(number) && number >= 0)) refuse();
const runner = path.join(root, "node_modules", "vitest", "vitest.mjs");
const config = path.join("tests", "load", "soak", "vitest.config.ts");
process.exitCode = await handOver(pinnedNode(root), [runner, "run", "--config", config, "--reporter=dot"], {
  cwd: root,
  env: {
    ...process.env,
    NODUS_SOAK: JSON.stringify(options),
    PATH: `${path.join(root, "node_modules", ".bin")}:${process.env.PATH}`,
  },
});

function optionsGiven() {
  const text = { type: "string" };
  const seed = { ...text, default: String(Date.now() % 1_000_000) };
  const times = { ...text, default: "1" };
  const streams = { ...text, default: "10000" };
  try {
    return parseArgs({ options: { hours: text, seed, streams, layout: text, round: text, times } }).values;
  } catch (error) {
    return refuse(`${error.message}\n`);
  }
}

function refuse(why = "") {
  process.stderr.write(why + USAGE);
  process.exit(2);
}
