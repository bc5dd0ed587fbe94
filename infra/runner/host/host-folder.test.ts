import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hostFolder } from "./host-folder.ts";

describe("where a host agent's folder is", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync("/var/tmp/nodus-home-");
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it("is in the data folder when everybody can pass through it", () => {
    chmodSync(home, 0o711);
    expect(hostFolder(join(home, "data"), true)).toBe(join(home, "data", "host"));
  });

  it("is in the data folder for an ordinary user, whose guests are that user too", () => {
    expect(hostFolder(join(home, "data"), false)).toBe(join(home, "data", "host"));
  });

  it.runIf(process.getuid?.() === 0)("is outside a private home for root, and moves with the data folder", () => {
    const before = join(home, "data");
    const folder = hostFolder(before, true);
    try {
      expect(folder).toMatch(/^\/var\/lib\/nodus\/[0-9a-f]{12}\/host$/);
      mkdirSync(join(home, "open"));
      const after = join(home, "open", "data");
      renameSync(before, after);
      chmodSync(home, 0o711);
      expect(hostFolder(after, true)).toBe(folder);
    } finally {
      rmSync(dirname(folder), { recursive: true });
    }
  });

  it.runIf(process.getuid?.() === 0)("is another one once the data folder was removed and made again", () => {
    const data = join(home, "data");
    const first = hostFolder(data, true);
    rmSync(data, { recursive: true });
    const second = hostFolder(data, true);
    for (const folder of new Set([first, second])) rmSync(dirname(folder), { recursive: true });
    expect(second).not.toBe(first);
  });
});
