import { spawn } from "node:child_process";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percent } from "../bench-row.ts";
import { PlatformUser } from "../guest-run.ts";
import { cpuMicrosOf } from "../measure.ts";

const MIB = 1024 * 1024;
const BYTES = 96 * MIB;
const SCRIPT = `yes 'step 12345 loss 0.123456 lr 0.000300 tokens/s 123456 gradient norm 1.2345 memory 71.2 GiB' | head -c ${BYTES}`;
const LEAST_MIB = 15;

/** One run that prints as fast as it is read, and one subscriber; the caps on logs are raised. */
async function run(bench: Bench): Promise<Outcome[]> {
  const platform = await bench.platform();
  const user = new PlatformUser(platform);
  try {
    const cpuBefore = cpuMicrosOf(platform.pid);
    const id = await user.submit(SCRIPT);
    const nodus = await throughput(user.output(id));
    const cpuPerMib = (cpuMicrosOf(platform.pid) - cpuBefore) / (BYTES / MIB);
    const baseline = await throughput(throughPipe());
    return [
      {
        what: "log of one run → one subscriber",
        nodus: `${nodus.toFixed(1)} MiB/s`,
        baseline: `${baseline.toFixed(0)} MiB/s`,
        ratio: percent(nodus / baseline),
        cpu: `${Math.round(cpuPerMib)} per MiB`,
        aim: `≥ ${LEAST_MIB} MiB/s`,
        met: nodus >= LEAST_MIB,
        note: `${BYTES / MIB} MiB of lines, kept and spooled on the way; baseline: the same script through cat and a pipe`,
      },
    ];
  } finally {
    await user.close();
  }
}

async function* throughPipe(): AsyncGenerator<{ bytes: Buffer }> {
  const child = spawn("sh", ["-c", `${SCRIPT} | cat`], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const bytes of child.stdout) yield { bytes: bytes as Buffer };
}

/** MiB a second from the first byte to the last. */
async function throughput(output: AsyncIterable<{ bytes: Buffer }>): Promise<number> {
  let startedAt = 0;
  let received = 0;
  let endedAt = 0;
  for await (const { bytes } of output) {
    endedAt = performance.now();
    startedAt ||= endedAt;
    received += bytes.length;
  }
  if (received !== BYTES) throw new Error(`${received} bytes came instead of ${BYTES}`);
  return received / MIB / ((endedAt - startedAt) / 1000);
}

export const logThroughput: BenchRow = { name: "log-throughput", run };
