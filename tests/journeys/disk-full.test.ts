import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { Platform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { script, settles, submit, writes } from "../support/workloads.ts";

const MIB = 1024 * 1024;

/** Leaves `freeMib` of the folder's file system. */
function fill(folder: string, file: string, freeMib: number): void {
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - freeMib * MIB)));
}

test("a disk that fills up admits nothing new while running work finishes, until there is room again", {
  timeout: 120_000,
}, async ({ skip }) => {
  const disk = mkdtempSync(path.join(tmpdir(), "nodus-small-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=768m,mode=711", "tmpfs", disk], { stdio: "ignore" });
  } catch {
    rmSync(disk, { recursive: true });
    skip("mounting a small file system needs root with CAP_SYS_ADMIN");
  }
  const dataDir = path.join(disk, "data");
  mkdirSync(dataDir, { mode: 0o711 });
  let platform: Platform | null = null;
  try {
    platform = await Platform.start({ NODUS_DISK_RESERVE_MIB: "128" }, { dataDir });
    const client = platform.admin;
    const running = await submit(
      client,
      script(
        "echo started; while [ ! -e state/go ] && [ $((n=n+1)) -lt 20 ]; do sleep 0.5; done; mkdir outputs; echo result > outputs/a.txt",
      ),
    );
    await writes(client, running, "started");

    const filler = path.join(disk, "filler");
    fill(disk, filler, 64);
    const create = (key: string) =>
      client.rest("createWorkload", { body: script("true"), headers: { "idempotency-key": key } });
    const refused = await until("nothing new is admitted", async () => {
      const answer = await create(crypto.randomUUID());
      return answer.status === 503 && answer;
    });
    expect(refused.body).toMatchObject({ error: "unavailable", reason: "storage_full" });
    expect(refused.body.message).toMatch(/disk is nearly full: \d+ MiB are free, and 128 MiB are kept/);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await client.send("GET", "/readyz")).status).toBe(200);

    expect((await settles(client, running)).status).toBe("completed");
    const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id: running } })).body;
    const name = outputs[0].name;
    expect((await client.rest("downloadWorkloadOutput", { path: { id: running, name } })).status).toBe(200);

    rmSync(filler);
    await until("new work is admitted", async () => (await create("after")).status === 202);
  } finally {
    try {
      await platform?.dispose();
    } finally {
      execFileSync("umount", ["--lazy", disk]);
      rmSync(disk, { recursive: true, force: true });
    }
  }
});
