import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { killAll, processesWith, withDescendants } from "./process-table.ts";

const FOLDER_START = "nodus-platform-";

/** A data folder that guests and PostgreSQL can reach. What runs killed before left behind is cleaned up first. */
export function newDataFolder(): string {
  removeLeftovers();
  const folder = mkdtempSync(path.join(tmpdir(), `${FOLDER_START}${process.pid}-`));
  chmodSync(folder, 0o711);
  return folder;
}

/** Free now; below the range that the system gives to outgoing connections, so that it is still free at a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const server = net.createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** Platforms of runs that were killed before they could clean up. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(FOLDER_START) || existsSync(`/proc/${name.slice(FOLDER_START.length).split("-")[0]}`))
      continue;
    const folder = path.join(tmpdir(), name);
    killAll(withDescendants(processesWith(folder)));
    rmSync(folder, { recursive: true, force: true });
  }
}
