import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openAsBlob, openSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { BENCH_KEY, type Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percent } from "../bench-row.ts";
import { cpuMicrosOf, residentMib } from "../measure.ts";

const MIB = 1024 * 1024;
const SIZE_MIB = 256;
const ROUNDS = 3;

/** One file of random bytes to the object store on disk, which hashes and flushes it; against `cp` and a flush. */
async function run(bench: Bench): Promise<Outcome[]> {
  const platform = await bench.platform();
  const file = path.join(bench.folder, "upload.bin");
  const copy = path.join(bench.folder, "copy.bin");
  fill(file);
  try {
    const rates: number[] = [];
    const copies: number[] = [];
    const cpuBefore = cpuMicrosOf(platform.pid);
    const residentBefore = residentMib(platform.pid);
    let resident = residentBefore;
    for (let round = 0; round < ROUNDS; round++) {
      let id = "";
      rates.push(
        await rate(async () => {
          id = await upload(platform.origin, file);
        }),
      );
      resident = Math.max(resident, residentMib(platform.pid));
      await remove(platform.origin, id);
      copies.push(await rate(() => promisify(execFile)("sh", ["-c", `cp "${file}" "${copy}" && sync "${copy}"`])));
    }
    const cpuPerMib = (cpuMicrosOf(platform.pid) - cpuBefore) / (SIZE_MIB * ROUNDS);
    const [nodus, baseline] = [Math.max(...rates), Math.max(...copies)];
    return [
      {
        what: "upload of one file over REST",
        nodus: `${nodus.toFixed(0)} MiB/s`,
        baseline: `${baseline.toFixed(0)} MiB/s`,
        ratio: percent(nodus / baseline),
        cpu: `${Math.round(cpuPerMib)} per MiB`,
        aim: "",
        met: null,
        note: `${SIZE_MIB} MiB of random bytes, the best of ${ROUNDS}; hashed, and flushed before the answer; the platform grew by ${Math.round(resident - residentBefore)} MiB; baseline: cp and sync of the same file`,
      },
    ];
  } finally {
    rmSync(file, { force: true });
    rmSync(copy, { force: true });
  }
}

function fill(file: string): void {
  const out = openSync(file, "w");
  for (let i = 0; i < SIZE_MIB; i++) writeSync(out, randomBytes(MIB));
  closeSync(out);
}

const AUTHORIZED = { authorization: `Bearer ${BENCH_KEY}` };

async function upload(origin: string, file: string): Promise<string> {
  const response = await fetch(`${origin}/v1/assets/upload?name=bench.bin`, {
    method: "POST",
    headers: { ...AUTHORIZED, "content-type": "application/octet-stream" },
    body: await openAsBlob(file),
  });
  if (response.status !== 201) throw new Error(`the upload was answered with ${response.status}`);
  return ((await response.json()) as { id: string }).id;
}

/** So that the next round stores the bytes again. */
async function remove(origin: string, id: string): Promise<void> {
  const { status } = await fetch(`${origin}/v1/assets/${id}`, { method: "DELETE", headers: AUTHORIZED });
  if (status !== 204) throw new Error(`the deletion was answered with ${status}`);
}

/** MiB a second of moving the file once. */
async function rate(move: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await move();
  return SIZE_MIB / ((performance.now() - startedAt) / 1000);
}

export const uploadRate: BenchRow = { name: "upload", run };
