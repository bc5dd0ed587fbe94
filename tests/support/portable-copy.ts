import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { PROJECT_ROOT } from "../../infra/telemetry/project-root.ts";

/** Copies files and folders of the project, and packages with all that they need, into another root. */
export function portableCopy(to: string, paths: readonly string[], packages: readonly string[]): void {
  mkdirSync(to, { recursive: true, mode: 0o755 });
  for (const name of ["package.json", ...paths]) copy(name, to);
  for (const name of withDependencies(packages)) copy(name, to);
}

function copy(name: string, to: string): void {
  cpSync(path.join(PROJECT_ROOT, name), path.join(to, name), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (file) => !file.endsWith(".test.ts"),
  });
}

/** Folders of packages and of what they depend on, as installed. */
function withDependencies(packages: readonly string[]): Set<string> {
  const lock = JSON.parse(readFileSync(path.join(PROJECT_ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dependencies?: Record<string, string> }>;
  };
  const found = new Set<string>();
  const waiting = packages.map((name) => `node_modules/${name}`);
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    if (found.has(folder) || !existsSync(path.join(PROJECT_ROOT, folder))) continue;
    found.add(folder);
    for (const name of Object.keys(lock.packages[folder]?.dependencies ?? {})) {
      const nested = `${folder}/node_modules/${name}`;
      waiting.push(lock.packages[nested] ? nested : `node_modules/${name}`);
    }
  }
  return found;
}
