import { spawn } from "node:child_process";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedLatencies, type Outcome } from "../bench-row.ts";
import { PlatformUser, wallNowMs } from "../guest-run.ts";

const LINES = 120;
/** Lines of the start are left out: they wait for the subscriber, not for the platform. */
const WARM_UP = 20;
const SCRIPT = `i=0; while [ $i -lt ${LINES} ]; do date +%s%N; sleep 0.03; i=$((i+1)); done`;

/** Each line is the machine's clock as it was printed; the subscriber compares it with the clock at arrival. */
async function run(bench: Bench): Promise<Outcome[]> {
  const user = new PlatformUser(await bench.platform());
  try {
    const ages = new Ages();
    const id = await user.submit(SCRIPT);
    for await (const { bytes, wallMs } of user.output(id)) ages.take(bytes, wallMs);
    const note = "a line every 30 ms; baseline: the same script's lines through a pipe";
    const line = { what: "line written → received", note, most: { p50Ms: null, p95Ms: 50 } };
    return [comparedLatencies({ ...line, nodusMs: ages.afterWarmUp(), baselineMs: await throughPipe() })];
  } finally {
    await user.close();
  }
}

async function throughPipe(): Promise<number[]> {
  const ages = new Ages();
  const child = spawn("sh", ["-c", SCRIPT], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const bytes of child.stdout) ages.take(bytes as Buffer, wallNowMs());
  return ages.afterWarmUp();
}

/** How old lines were when they came. */
class Ages {
  readonly #agesMs: number[] = [];
  #rest = "";

  take(bytes: Buffer, wallMs: number): void {
    const lines = (this.#rest + bytes.toString("latin1")).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) this.#agesMs.push(wallMs - Number(line) / 1e6);
  }

  afterWarmUp(): number[] {
    if (this.#agesMs.length !== LINES) throw new Error(`${this.#agesMs.length} lines came instead of ${LINES}`);
    return this.#agesMs.slice(WARM_UP);
  }
}

export const lineLatency: BenchRow = { name: "line-latency", run };
