import { createHash, randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { GUEST_ETC } from "../isolation/bubblewrap.ts";
import { seccompProgram } from "../isolation/seccomp.ts";

/** Files that every guest reads or executes, at paths that its uid can reach. */
export interface GuestBinaries {
  node: string;
  init: string;
  etc: string;
  seccompFile: string | null;
}

/**
 * Puts them where guests can reach them. A guest with a uid of its own can't pass through a private home, so what lies
 * in one is copied; a Node binary that everybody can reach is used where it is.
 * @param folder must be reachable by guests, such as `/var/lib/nodus/guest` for root
 */
export function placeGuestBinaries(folder: string, nodeBinary: string, arch: string): GuestBinaries {
  const node = realpathSync(nodeBinary);
  const init = initSource();
  const seccomp = seccompProgram(arch);
  const stats = statSync(node);
  const version = createHash("sha256")
    .update(JSON.stringify([node, stats.size, stats.mtimeMs, init, GUEST_ETC]))
    .update(seccomp ?? "")
    .digest("hex")
    .slice(0, 16);
  const home = join(folder, version);
  const etc = join(home, "etc");
  makeReachable(etc);
  for (const [name, content] of Object.entries(GUEST_ETC))
    place(join(etc, name), 0o644, (path) => writeFileSync(path, content));
  const initFile = join(home, "init.mjs");
  place(initFile, 0o644, (path) => writeFileSync(path, init));
  const seccompFile = seccomp && join(home, "seccomp.bpf");
  if (seccompFile) place(seccompFile, 0o644, (path) => writeFileSync(path, seccomp));
  if (readableByAll(node)) return { node, init: initFile, etc, seccompFile };
  const copy = join(home, "node");
  place(copy, 0o755, (path) => copyFileSync(node, path));
  return { node: copy, init: initFile, etc, seccompFile };
}

/** Whether every user may walk through a folder and all above it. */
export function passableByAll(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false;
  return folder === dirname(folder) || passableByAll(dirname(folder));
}

/** Whether every user may walk to a file and read it. */
function readableByAll(file: string): boolean {
  return passableByAll(dirname(file)) && (statSync(file).mode & 0o004) !== 0;
}

/** Init as plain JavaScript: compiled already, or from its source with the types taken out. */
function initSource(): string {
  const compiled = fileURLToPath(new URL("../guest/init.js", import.meta.url));
  if (existsSync(compiled)) return readFileSync(compiled, "utf8");
  return stripTypeScriptTypes(readFileSync(fileURLToPath(new URL("../guest/init.ts", import.meta.url)), "utf8"));
}

/** Creates a file that is complete as soon as it has its name; what is there already is kept. */
function place(path: string, mode: number, write: (path: string) => void): void {
  if (existsSync(path)) return;
  const draft = `${path}.${randomUUID()}`;
  write(draft);
  chmodSync(draft, mode);
  renameSync(draft, path);
}

/** Creates what is missing of a path, each folder open to everybody whatever this process's umask is. */
function makeReachable(folder: string): void {
  if (existsSync(folder)) return;
  makeReachable(dirname(folder));
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
}
