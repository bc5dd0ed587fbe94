import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { seccompProgram } from "../runner/isolation/seccomp.ts";
import type { Confined } from "./confined-child.ts";

/** How the children of this process are confined; without bubblewrap by DuckDB's own lock alone. */
export type Confinement = Confined | { readonly level: "none"; readonly reason: string };

/** Runs a small task under a confinement and says what went wrong, null for nothing. */
export type Trial = (confined: Confined, folder: string) => Promise<string | null>;

/**
 * The strongest confinement that works here. What works is found out by a real task, not inferred from a version or a
 * kernel setting; without bubblewrap, or where it is not let make namespaces, it is `none` and says why.
 */
export async function findConfinement(trial: Trial): Promise<Confinement> {
  const seccomp = seccompProgram(process.arch) !== null;
  const users = process.getuid?.() === 0 ? [true, false] : [false];
  const reasons: string[] = [];
  for (const ownUser of users) {
    const confined: Confined = { level: "bubblewrap", ownUser, seccomp };
    const reason = await attempt(trial, confined);
    if (reason === null) return confined;
    reasons.push(reason);
  }
  return { level: "none", reason: reasons.join("; ") };
}

async function attempt(trial: Trial, confined: Confined): Promise<string | null> {
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-confinement-"));
  try {
    await writeFile(path.join(folder, "trial.csv"), "a\n1\n");
    return await trial(confined, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
