import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PROJECT_ROOT, projectFile } from "../../infra/telemetry/project-root.ts";

/** Builds of test runs; below the project, since a build finds the project's files from its own place. */
const BUILDS = projectFile(".nodus-test");
/** A build of sources that nobody has any more goes after this. */
const KEPT_MS = 6 * 3_600_000;

/**
 * The command line compiled from the sources as they are now. Test files that start platforms share one build: the
 * first makes it, the others wait for it.
 */
export async function builtCommandLine(): Promise<string> {
  const fingerprint = sourcesFingerprint();
  const folder = path.join(BUILDS, `dist-${fingerprint}`);
  const program = path.join(folder, "nodus.js");
  while (!existsSync(program)) {
    const lock = await takeLock(fingerprint);
    if (!lock) {
      await sleep(100);
      continue;
    }
    try {
      if (!existsSync(program)) compile(folder);
    } finally {
      lock.close();
    }
  }
  return program;
}

function compile(folder: string): void {
  mkdirSync(BUILDS, { recursive: true });
  removeOldBuilds();
  const unfinished = `${folder}.${process.pid}`;
  const compiler = projectFile("node_modules", "typescript", "bin", "tsc");
  const { status, stdout } = spawnSync(
    process.execPath,
    [compiler, "-p", projectFile("tsconfig.build.json"), "--outDir", unfinished],
    { cwd: PROJECT_ROOT, encoding: "utf8" },
  );
  // What is wrong with types is told by a test of its own; here only what cannot run matters.
  if (status !== 0 && !existsSync(path.join(unfinished, "nodus.js"))) {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error(`the sources do not compile:\n${stdout}`);
  }
  renameSync(unfinished, folder);
}

function removeOldBuilds(): void {
  for (const name of readdirSync(BUILDS)) {
    const build = path.join(BUILDS, name);
    if (Date.now() - statSync(build).mtimeMs > KEPT_MS) rmSync(build, { recursive: true, force: true });
  }
}

function sourcesFingerprint(): string {
  const hash = createHash("sha256");
  const { include } = JSON.parse(readFileSync(projectFile("tsconfig.build.json"), "utf8")) as { include: string[] };
  const patterns = include.map((name) => (name.endsWith(".ts") ? name : `${name}/**/*.ts`));
  const files = globSync(["tsconfig*.json", "package-lock.json", ...patterns], { cwd: PROJECT_ROOT }).sort();
  for (const file of files) {
    if (file.endsWith(".test.ts")) continue;
    const { size, mtimeMs } = statSync(projectFile(file));
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** An abstract socket as a lock: it goes when its process goes. Null when another process holds it. */
function takeLock(name: string): Promise<net.Server | null> {
  const lock = net.createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    lock.once("error", () => resolve(null));
    lock.listen(`\0nodus-test-build-${name}`, () => resolve(lock));
  });
}
