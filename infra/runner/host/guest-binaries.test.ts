import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { passableByAll, placeGuestBinaries } from "./guest-binaries.ts";

describe("placeGuestBinaries", () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync("/var/tmp/nodus-binaries-");
    chmodSync(base, 0o755);
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  it("copies a Node binary out of a private home, whatever the umask, and uses a reachable one where it is", () => {
    const home = join(base, "home");
    mkdirSync(home, { mode: 0o700 });
    const real = join(home, "node-real");
    writeFileSync(real, "#!/bin/sh\necho private\n", { mode: 0o700 });
    symlinkSync(real, join(base, "node"));
    const before = process.umask(0o077);
    const placed = placeGuestBinaries(join(base, "deep", "guest"), join(base, "node"), "x64");
    process.umask(before);
    expect(readFileSync(placed.node, "utf8")).toContain("private");
    for (const file of [placed.node, placed.init, placed.seccompFile!, join(placed.etc, "passwd")]) {
      expect([file, passableByAll(dirname(file)), statSync(file).mode & 0o044]).toEqual([file, true, 0o044]);
    }
    expect(statSync(placed.node).mode & 0o111).toBe(0o111);
    chmodSync(home, 0o755);
    chmodSync(real, 0o755);
    expect(placeGuestBinaries(join(base, "deep", "guest"), join(base, "node"), "x64").node).toBe(real);
  });

  it("places an init that is plain JavaScript with no import but Node's own", () => {
    const { init } = placeGuestBinaries(join(base, "guest"), process.execPath, process.arch);
    execFileSync(process.execPath, ["--check", init]);
    const imports = [...readFileSync(init, "utf8").matchAll(/^\s*import .* from "([^"]+)"/gm)].map((match) => match[1]);
    expect(imports.length).toBeGreaterThan(0);
    for (const name of imports) expect(name).toMatch(/^node:/);
  });

  it("has no filter for a processor whose system calls are not known", () => {
    expect(placeGuestBinaries(join(base, "guest"), process.execPath, "riscv64").seccompFile).toBeNull();
  });
});
