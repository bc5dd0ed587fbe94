import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { objectStoreConformance } from "../../tests/conformance/object-store.ts";
import { openDiskStore } from "./disk-store.ts";
import { StorageFull } from "./object-store.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "nodus-objects-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function filesUnder(root: string): string[] {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
}

objectStoreConformance("a folder", async () => ({
  store: await openDiskStore(folder),
  leftovers: async () => filesUnder(folder),
  close: async () => {},
}));

test("an object lies two folders deep under its hash and belongs to the platform alone", async () => {
  const store = await openDiskStore(folder);
  const { sha256 } = await store.put(Readable.from([randomBytes(10)]), { maxBytes: 10 });
  const file = path.join("objects", sha256.slice(0, 2), sha256.slice(2, 4), sha256);
  expect(filesUnder(folder)).toEqual([file]);
  expect(statSync(path.join(folder, file)).mode & 0o777).toBe(0o600);
});

test("a store that is opened again has what was put before", async () => {
  const { sha256 } = await (await openDiskStore(folder)).put(Readable.from([randomBytes(10)]), { maxBytes: 10 });
  expect(await (await openDiskStore(folder)).has(sha256)).toBe(true);
});

test("sweeping removes what a crash left, and nothing of a put in progress", async () => {
  const store = await openDiskStore(folder);
  const old = path.join(folder, "temp", "left-by-a-crash");
  writeFileSync(old, "half an obj");
  utimesSync(old, new Date("2026-01-01"), new Date("2026-01-01"));
  writeFileSync(path.join(folder, "temp", "still-written"), "half");
  expect(await store.sweepTemp(3_600_000)).toBe(1);
  expect(filesUnder(folder)).toEqual([path.join("temp", "still-written")]);
});

test("a folder that cannot be written is reported by ping", async () => {
  const store = await openDiskStore(folder);
  rmSync(path.join(folder, "temp"), { recursive: true });
  await expect(store.ping()).rejects.toThrow("ENOENT");
});

test("a full disk is told apart from other faults and leaves nothing", async ({ skip }) => {
  const small = path.join(folder, "small");
  mkdirSync(small);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", small], { stdio: "ignore" });
  } catch {
    skip("mounting a small file system needs root with CAP_SYS_ADMIN");
  }
  try {
    const store = await openDiskStore(small);
    const tooMuch = Readable.from([randomBytes(800_000), randomBytes(800_000)]);
    await expect(store.put(tooMuch, { maxBytes: 10_000_000 })).rejects.toThrow(StorageFull);
    expect(filesUnder(small)).toEqual([]);
    expect((await store.put(Readable.from([randomBytes(100_000)]), { maxBytes: 10_000_000 })).bytes).toBe(100_000);
  } finally {
    execFileSync("umount", [small]);
  }
});
