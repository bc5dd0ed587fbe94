import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ProcessIdentity } from "../isolation/processes.ts";
import type { OrderSpec } from "../protocol.ts";

const run = promisify(execFile);

/** What a later life of the host agent must know of an order. Holds the session's token but no secret of a tenant. */
export interface StoredOrder {
  orderId: string;
  session: string;
  spec: OrderSpec;
}

/**
 * The files of one order. Folders that a guest must reach are searchable by everybody, since bubblewrap runs under the
 * guest's uid; what the host keeps for itself is private.
 */
export class OrderFolder {
  readonly root: string;

  constructor(orders: string, orderId: string) {
    this.root = join(orders, folderNameOf(orderId));
  }

  get spool(): string {
    return join(this.root, "spool.ndjson");
  }

  /** Becomes `/workspace` of the guest. */
  get workspace(): string {
    return join(this.root, "workspace");
  }

  get run(): string {
    return join(this.root, "run");
  }

  /** A staged object on its way in. */
  get download(): string {
    return join(this.root, "download");
  }

  create(): void {
    mkdirSync(this.root, { recursive: true });
    chmodSync(this.root, 0o711);
    for (const [path, mode] of [
      [this.workspace, 0o700],
      [this.run, 0o755],
    ] as const) {
      mkdirSync(path, { recursive: true });
      chmodSync(path, mode);
    }
  }

  /** The skeleton of the workspace, owned by the guest. */
  prepareWorkspace(uid: number | null): void {
    for (const name of ["", "code", "code/state", "inputs", "home", "tmp", "tmp/cache"]) {
      const path = join(this.workspace, name);
      mkdirSync(path, { recursive: true });
      if (uid !== null) chownSync(path, uid, uid);
    }
  }

  async store(order: StoredOrder): Promise<void> {
    const path = join(this.root, "order.json");
    await writeFile(`${path}.new`, JSON.stringify(order), { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
  }

  /** Names the guest's first process, so that a later life can end exactly that one. Not flushed: it dies with the machine. */
  storeGuest(init: ProcessIdentity): void {
    writeFileSync(join(this.root, "guest.json"), JSON.stringify(init), { mode: 0o600 });
  }

  /** Null when no guest was started. */
  loadGuest(): ProcessIdentity | null {
    return readJson<ProcessIdentity>(join(this.root, "guest.json"));
  }

  /** Null when the order never got as far as a session. */
  load(): StoredOrder | null {
    return readJson<StoredOrder>(join(this.root, "order.json"));
  }

  /** Leaves a mark of life that outlives this process. */
  touch(now: Date): void {
    utimesSync(join(this.root, "order.json"), now, now);
  }

  /** When the order was last known to be looked after. */
  touchedAt(): Date {
    return statSync(join(this.root, "order.json")).mtime;
  }

  /** Everything that the guest could write. The spool stays until intake has all of it. */
  async removeGuestFiles(): Promise<void> {
    for (const path of [this.workspace, this.run]) await removeTree(path);
  }

  async remove(): Promise<void> {
    await removeTree(this.root);
  }
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch {
    return null; // never written, or cut off by a crash
  }
}

/**
 * A guest may have closed folders to its own user, which whoever is not root has to open first, and may have nested them
 * deeper than a path can say, which rm(1) walks and Node cannot.
 */
async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    await run("chmod", ["-R", "u+rwX", path]).catch(() => {}); // complains of what vanished meanwhile
    await run("rm", ["-rf", "--", path]);
  }
}

/** An order's id comes from outside; only a plain one becomes a file name as it is. */
function folderNameOf(orderId: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(orderId)) return orderId;
  return `x${createHash("sha256").update(orderId).digest("hex").slice(0, 40)}`;
}
