import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { type Account, NOBODY } from "./account.ts";
import { type PostgresBinaries, program, programEnvironment } from "./binaries.ts";
import { clusterOf } from "./place.ts";

/** Name of the superuser that the platform logs in as. */
export const DATABASE_USER = "nodus";

const INITDB_TIMEOUT_MS = 120_000;

/**
 * Makes a new cluster with a random password, all or nothing: it is built beside its place and renamed into it. When
 * another platform was faster, its cluster stays and ours goes. `durable: false` skips the final flush to disk.
 */
export async function createCluster(
  folder: string,
  binaries: PostgresBinaries,
  account: Account | null,
  durable: boolean,
): Promise<void> {
  removeUnfinished(folder);
  const unfinished = `${folder}.new-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  chmodSync(unfinished, account ? 0o711 : 0o700);
  writeFileSync(passwordFile(unfinished), `${randomBytes(24).toString("base64url")}\n`, { mode: 0o600 });
  try {
    await initdb(unfinished, binaries, account, durable);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(clusterOf(folder))) throw error; // else another platform was faster
  }
}

/** The superuser's password; only the platform's own account can read the file. */
export function readPassword(folder: string): string {
  return readFileSync(passwordFile(folder), "utf8").trim();
}

/** Refuses a cluster of another major version, which these binaries could not read. */
export function checkVersion(folder: string, binaries: PostgresBinaries): void {
  const major = readFileSync(path.join(clusterOf(folder), "PG_VERSION"), "utf8").trim();
  if (major === binaries.major) return;
  throw new Error(
    `The database in ${folder} was written by PostgreSQL ${major}, and this release brings PostgreSQL ${binaries.major}. ` +
      "Start the release that wrote it, dump the database there, and load it into a new data folder.",
  );
}

function passwordFile(folder: string): string {
  return path.join(folder, "password");
}

/** What a platform that was killed in the middle of `initdb` left behind. */
function removeUnfinished(folder: string): void {
  const parent = path.dirname(folder);
  const start = `${path.basename(folder)}.new-`;
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(start)) continue;
    const maker = name.slice(start.length);
    if (maker === String(process.pid) || !existsSync(`/proc/${maker}`))
      rmSync(path.join(parent, name), { recursive: true, force: true });
  }
}

/**
 * Runs `initdb`. It looks its user up in the machine's user list, where PostgreSQL's own account is not, so under root
 * it runs as `nobody` and the files are handed over afterwards. The collation is built into PostgreSQL: an update of
 * the machine's C library cannot reorder an index.
 */
async function initdb(
  folder: string,
  binaries: PostgresBinaries,
  account: Account | null,
  durable: boolean,
): Promise<void> {
  const cluster = clusterOf(folder);
  const secret = passwordFile(folder);
  mkdirSync(cluster, { mode: 0o700 });
  if (account) for (const file of [secret, cluster]) chownSync(file, NOBODY.uid, NOBODY.gid);
  const locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8"];
  const access = [`--username=${DATABASE_USER}`, `--pwfile=${secret}`, "--auth=scram-sha-256"];
  const speed = durable ? [] : ["--no-sync"];
  try {
    await promisify(execFile)(program(binaries, "initdb"), ["-D", cluster, ...locale, ...access, ...speed], {
      ...(account ? NOBODY : {}),
      cwd: "/",
      env: programEnvironment(binaries),
      timeout: INITDB_TIMEOUT_MS,
    });
  } catch (cause) {
    throw new Error(`initdb could not make the database in ${cluster}: ${complaint(cause)}`, { cause });
  }
  if (!account) return;
  chownSync(secret, process.geteuid!(), process.getegid!());
  handOver(cluster, account);
}

function complaint(failure: unknown): string {
  const said = (failure as { stderr?: string }).stderr || String(failure);
  if (!said.includes("could not look up effective user ID")) return said;
  return (
    `user id ${process.geteuid!()} has no name in this machine's list of users, and PostgreSQL's initdb wants one. ` +
    "Start the platform as a user that is in /etc/passwd, or set DATABASE_URL."
  );
}

function handOver(folder: string, account: Account): void {
  lchownSync(folder, account.uid, account.gid);
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    lchownSync(path.join(entry.parentPath, entry.name), account.uid, account.gid);
}
