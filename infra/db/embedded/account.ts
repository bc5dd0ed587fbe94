import { existsSync, readFileSync, statSync } from "node:fs";

/** A user and group that a process runs as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Neither a person, nor a packaged service, nor a dynamic service user has this id, so PostgreSQL shares it with nobody. */
const OWN_UID = 65_530;
/** `nobody`: known to the machine's user list (which `initdb` insists on), and mapped in most containers. */
export const NOBODY: Account = { uid: 65_534, gid: 65_534 };

export function runsAsRoot(): boolean {
  return process.geteuid?.() === 0;
}

/**
 * Who PostgreSQL runs as. Null: as the platform itself, which is an ordinary user. Started by root it gets an account
 * of its own (PostgreSQL refuses root); a folder that an ordinary user's platform made keeps that user.
 */
export function postgresAccount(cluster: string): Account | null {
  if (!runsAsRoot()) return null;
  if (existsSync(cluster)) {
    const { uid, gid } = statSync(cluster);
    if (uid !== 0) return { uid, gid };
  }
  if (isMapped(OWN_UID)) return { uid: OWN_UID, gid: OWN_UID };
  return NOBODY;
}

/** Inside a user namespace only some ids exist. */
function isMapped(uid: number): boolean {
  return readFileSync("/proc/self/uid_map", "utf8")
    .trim()
    .split("\n")
    .some((line) => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return uid >= first && uid < first + count;
    });
}
