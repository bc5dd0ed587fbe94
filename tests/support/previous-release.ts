import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Migration } from "../../infra/db/migrate.ts";
import { PROJECT_ROOT, projectFile } from "../../infra/telemetry/project-root.ts";

const MIGRATIONS = "infra/db/migrations";

/** Names of migrations with the SHA-256 of their files. */
export type MigrationHashes = Readonly<Record<string, string>>;

/** A commit that lacks `added`, the migrations that came after it, and has all before them as they are now. */
export interface EarlierCommit {
  commit: string;
  added: readonly string[];
}

/**
 * The newest commit before the migrations of the release in the making, or, where it has none yet, before the newest
 * released one: so there is always something that was added under it. The reason, where the history lacks it.
 */
export function previousRelease(own: readonly Migration[], released: MigrationHashes): EarlierCommit | Missing {
  if (!existsSync(projectFile(".git"))) return { missing: "there is no git repository here" };
  try {
    if (git("rev-parse", "--is-shallow-repository").trim() === "true")
      return { missing: "the git repository is a shallow clone" };
    const unreleased = own.filter(({ name }) => !(name in released));
    const known = own.slice(0, own.length - (unreleased.length || 1));
    const added = own.slice(known.length).map(({ name }) => name);
    const touching = git("rev-list", "HEAD", "--", MIGRATIONS).trim().split("\n");
    for (const commit of ["HEAD", ...touching.map((touched) => `${touched}^`)])
      if (hasExactly(commit, known)) return { commit: git("rev-parse", commit).trim(), added };
    return { missing: `no commit has exactly the migrations before ${added[0]}` };
  } catch (error) {
    return { missing: `git cannot be asked (${(error as Error).message.split("\n")[0]})` };
  }
}

interface Missing {
  missing: string;
}

/** A compiled copy of a commit, in a folder that `remove` deletes. */
export function buildCommit(commit: string): { commandLine: string; remove(): void } {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-release-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const archive = execFileSync("git", ["archive", commit], { cwd: PROJECT_ROOT, maxBuffer: 512 * 1024 * 1024 });
    execFileSync("tar", ["-x", "-C", folder], { input: archive });
    symlinkSync(projectFile("node_modules"), path.join(folder, "node_modules"));
    mkdirSync(path.join(folder, "dist"));
    const compiler = projectFile("node_modules", "typescript", "bin", "tsc");
    const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.build.json"], {
      cwd: folder,
      encoding: "utf8",
    });
    const commandLine = path.join(folder, "dist", "nodus.js");
    if (status !== 0 && !existsSync(commandLine)) throw new Error(`the commit does not compile:\n${stdout}`);
    return { commandLine, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function hasExactly(commit: string, known: readonly Migration[]): boolean {
  const listed = gitOrNull("ls-tree", "--name-only", commit, `${MIGRATIONS}/`);
  if (listed === null) return false; // before the first commit
  const files = listed.trim().split("\n");
  if (files.join() !== known.map(({ name }) => `${MIGRATIONS}/${name}.sql`).join()) return false;
  return known.every(({ sql }, i) => git("show", `${commit}:${files[i]}`) === sql);
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function git(...args: string[]): string {
  return execFileSync("git", args, {
    cwd: PROJECT_ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 64 * 1024 * 1024,
  });
}

function gitOrNull(...args: string[]): string | null {
  try {
    return git(...args);
  } catch {
    return null; // there is no such commit or folder
  }
}
