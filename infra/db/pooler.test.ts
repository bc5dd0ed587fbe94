import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { freePort } from "../../tests/support/platform-place.ts";
import { PooledConnection, refusePooler } from "./pooler.ts";

test("PostgreSQL itself is never taken for a pooler, whoever else connects", async () => {
  await Promise.all(Array.from({ length: 10 }, () => refusePooler(inject("databaseUrl"))));
});

test("a pooler in transaction mode is refused by name, and one in session mode is not", {
  timeout: 30_000,
}, async ({ skip }) => {
  if (!hasPgbouncer()) return skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)");
  await expect(refusePooler(await startPooler("transaction"))).rejects.toThrow(PooledConnection);
  await refusePooler(await startPooler("session"));
});

function hasPgbouncer(): boolean {
  try {
    execFileSync("pgbouncer", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A pooler in front of the run's server; its address. */
async function startPooler(mode: "transaction" | "session"): Promise<string> {
  const server = new URL(inject("databaseUrl"));
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-pooler-"));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const configuration = path.join(folder, "pgbouncer.ini");
  const target = `host=127.0.0.1 port=${server.port} dbname=postgres user=${server.username} password=${decodeURIComponent(server.password)}`;
  writeFileSync(
    configuration,
    `[databases]\npostgres = ${target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\npool_mode = ${mode}\n`,
  );
  chmodSync(configuration, 0o644);
  const user = process.geteuid?.() === 0 ? ["-u", "nobody"] : []; // it refuses root
  const pooler = spawn("pgbouncer", [...user, configuration], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => {
    pooler.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    pooler.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("process up")) resolve();
    });
    pooler.once("exit", (code) => reject(new Error(`pgbouncer ended with ${code}:\n${said}`)));
  });
  return `postgres://nobody@127.0.0.1:${port}/postgres`;
}
