import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { adoptNextMasterKey, masterKeyOf, nextMasterKeyOf, otherMasterKeysOf } from "./master-key-file.ts";

test("processes that have one number, as first ones of containers do, don't write into each other's unfinished key", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-master-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // A file that another container's process of this number is about to write.
  for (const name of ["master.key", "master.key.next", "master.key.old"])
    mkdirSync(path.join(folder, `${name}.${process.pid}`));
  const first = masterKeyOf(folder);
  expect(masterKeyOf(folder)).toEqual(first);
  const next = nextMasterKeyOf(folder);
  adoptNextMasterKey(folder);
  expect(masterKeyOf(folder)).toEqual(next);
  expect(otherMasterKeysOf(folder)).toEqual([first]);
  expect(readdirSync(folder)).toHaveLength(5);
});
