import { randomUUID } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { placedOutside, placeOutside, SHARED_FOLDER } from "../../kernel/shared-folder.ts";
import { type Account, postgresAccount, runsAsRoot } from "./account.ts";
import { binariesAt, type PostgresBinaries, program } from "./binaries.ts";

/** True when `account` may pass through every folder above `file` and read (and, for programs, run) it. */
export function canReach(file: string, account: Account): boolean {
  let folder = path.resolve(file);
  if (existsSync(folder) && !permits(folder, account, statSync(folder).isDirectory() ? 1 : 4)) return false;
  while (folder !== path.dirname(folder)) {
    folder = path.dirname(folder);
    if (existsSync(folder) && !permits(folder, account, 1)) return false;
  }
  return true;
}

function permits(file: string, account: Account, bits: number): boolean {
  const { mode, uid, gid } = statSync(file);
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
  return ((mode >> shift) & bits) === bits;
}

/**
 * A copy of a folder below `SHARED_FOLDER` that every account can read, made once per name. The name must change when
 * the content does, so it carries a version or a hash.
 */
export function sharedCopy(from: string, name: string): string {
  const to = path.join(SHARED_FOLDER, name);
  if (existsSync(to)) return to;
  mkdirSync(SHARED_FOLDER, { recursive: true, mode: 0o755 });
  const unfinished = `${to}.${randomUUID()}`;
  cpSync(from, unfinished, { recursive: true, verbatimSymlinks: true });
  openToAll(unfinished);
  try {
    renameSync(unfinished, to);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(to)) throw error; // else another process finished the same copy first
  }
  return to;
}

function openToAll(file: string): void {
  const stat = lstatSync(file);
  if (stat.isSymbolicLink()) return;
  chmodSync(file, stat.isDirectory() || stat.mode & 0o100 ? 0o755 : 0o644);
  if (stat.isDirectory()) for (const name of readdirSync(file)) openToAll(path.join(file, name));
}

/** The binaries where `account` can run them: as installed, or a shared copy. */
export function reachableBinaries(binaries: PostgresBinaries, account: Account | null): PostgresBinaries {
  if (!account || canReach(program(binaries, "postgres"), account)) return binaries;
  return binariesAt(binaries, sharedCopy(binaries.root, `postgres-${binaries.version}`));
}

/**
 * The folder for PostgreSQL's things of a platform: `<dataDir>/postgres`, or one outside where root starts the platform
 * and the data folder is private.
 */
export function postgresFolder(dataDir: string): string {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const folder = realpathSync(dataDir);
  const outside = placedOutside(folder, "postgres");
  if (outside) return outside;
  const home = path.join(folder, "postgres");
  const account = postgresAccount(clusterOf(home));
  if (!runsAsRoot() || existsSync(home) || !account || canReach(folder, account)) return home;
  return placeOutside(folder, "postgres");
}

/** Whether a data folder has a database already. Makes nothing. */
export function hasCluster(dataDir: string): boolean {
  if (!existsSync(dataDir)) return false;
  const folder = realpathSync(dataDir);
  return existsSync(clusterOf(placedOutside(folder, "postgres") ?? path.join(folder, "postgres")));
}

/** PostgreSQL's own data folder within its place. */
export function clusterOf(folder: string): string {
  return path.join(folder, "cluster");
}

/** The folder of the server's Unix socket within its place. */
export function socketFolderOf(folder: string): string {
  return path.join(folder, "run");
}
