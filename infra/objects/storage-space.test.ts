import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { FakeClock } from "../kernel/clock.ts";
import { DiskSpace } from "./storage-space.ts";

const MIB = 1024 * 1024;

test("a file system that fills up is a shortage, told once, until there is room again", async ({ skip }) => {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-space-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    rmSync(folder, { recursive: true });
    skip("mounting a small file system needs root with CAP_SYS_ADMIN");
  }
  try {
    const told: string[] = [];
    const note = (_: object, text: string) => void told.push(text);
    const logger = { warn: note, info: note } as ConstructorParameters<typeof DiskSpace>[0]["logger"];
    const clock = new FakeClock("2026-03-01T00:00:00Z");
    const space = new DiskSpace({ folder, reserveBytes: 4 * MIB, clock, logger });
    expect(await space.shortage()).toBeNull();
    writeFileSync(path.join(folder, "filler"), Buffer.alloc(5 * MIB));
    expect(await space.shortage()).toBeNull(); // the last look still holds
    clock.advance(1_000);
    expect(await space.shortage()).toMatch(/nearly full: [23] MiB are free, and 4 MiB are kept/);
    clock.advance(1_000);
    expect(await space.shortage()).not.toBeNull();
    rmSync(path.join(folder, "filler"));
    clock.advance(1_000);
    expect(await space.shortage()).toBeNull();
    expect(told).toEqual([
      "the disk is nearly full: no new work is admitted",
      "the disk has room again: new work is admitted",
    ]);
  } finally {
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true });
  }
});

test("no reserve is never a shortage, and a folder that is not there is a fault", async () => {
  const settings = { clock: new FakeClock("2026-03-01T00:00:00Z"), logger: { warn() {}, info() {} } };
  expect(await new DiskSpace({ ...settings, folder: tmpdir(), reserveBytes: 0 }).shortage()).toBeNull();
  const nowhere = new DiskSpace({ ...settings, folder: path.join(tmpdir(), "no-such-folder"), reserveBytes: 1 });
  await expect(nowhere.shortage()).rejects.toThrow("ENOENT");
});
