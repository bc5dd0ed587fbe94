import { existsSync } from "node:fs";
import path from "node:path";

/**
 * The folder with `package.json` and `schema/`. Code runs from its sources in tests and from `dist/` otherwise, so
 * files that are not code are found from here and never by a path relative to the code.
 */
export const PROJECT_ROOT = findProjectRoot(import.meta.dirname);

/** An absolute path of a file of the project, such as `projectFile("schema", "supergraph.graphql")`. */
export function projectFile(...parts: string[]): string {
  return path.join(PROJECT_ROOT, ...parts);
}

function findProjectRoot(start: string): string {
  for (let folder = start; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, "package.json"))) return folder;
    if (folder === path.dirname(folder))
      throw new Error(`There is no package.json above ${start}; the installation is not complete.`);
  }
}
