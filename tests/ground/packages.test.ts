import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";

interface LockedPackage {
  version: string;
  license?: string;
  dev?: boolean;
  resolved?: string;
  integrity?: string;
}

const manifest = JSON.parse(readFileSync(projectFile("package.json"), "utf8")) as Record<
  string,
  Record<string, string>
>;
const lockText = readFileSync(projectFile("package-lock.json"), "utf8");
const lock = JSON.parse(lockText) as { packages: Record<string, LockedPackage> };
const locked = Object.entries(lock.packages).filter(([name]) => name !== "");

const PERMISSIVE = [
  "MIT",
  "MIT-0",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "0BSD",
  "BlueOak-1.0.0",
  "Unlicense",
  "CC0-1.0",
  "Python-2.0",
  "Zlib",
];

/** True when an SPDX expression can be met with the given licences. */
function satisfiedBy(expression: string, licences: readonly string[]): boolean {
  const alternatives = expression.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return alternatives.some((all) =>
    all.split(" AND ").every((licence) => licences.includes(licence.replace(/[()]/g, "").trim())),
  );
}

function licenceOf(name: string, { license }: LockedPackage): string {
  if (license) return license;
  const file = projectFile(name, "package.json");
  const own = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { license?: string }).license : undefined;
  return own ?? "none stated";
}

test("what runs in production is under permissive licences", () => {
  const others = locked.filter(([name, p]) => !p.dev && !satisfiedBy(licenceOf(name, p), PERMISSIVE));
  expect(others.map(([name, p]) => `${name}: ${licenceOf(name, p)}`)).toEqual([]);
});

test("what only develops and tests may be under MPL-2.0 too, and under nothing stricter", () => {
  const others = locked.filter(([name, p]) => p.dev && !satisfiedBy(licenceOf(name, p), [...PERMISSIVE, "MPL-2.0"]));
  expect(others.map(([name, p]) => `${name}: ${licenceOf(name, p)}`)).toEqual([]);
});

test("licence expressions are read as SPDX means them", () => {
  expect(satisfiedBy("(MIT OR GPL-3.0)", ["MIT"])).toBe(true);
  expect(satisfiedBy("MIT AND GPL-3.0", ["MIT"])).toBe(false);
  expect(satisfiedBy("(MIT AND Zlib)", ["MIT", "Zlib"])).toBe(true);
  expect(satisfiedBy("none stated", ["MIT"])).toBe(false);
});

test("every version is exact", () => {
  const ranges = ["dependencies", "devDependencies", "optionalDependencies"].flatMap((kind) =>
    Object.entries(manifest[kind] ?? {}).filter(([, version]) => !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version)),
  );
  expect(ranges).toEqual([]);
});

test("the lock file knows every package that the manifest wants, at its version", () => {
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"])
    for (const [name, version] of Object.entries(manifest[kind] ?? {}))
      expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version);
});

test("the lock file pins contents, and ties the project to no registry", () => {
  expect(locked.filter(([, p]) => !p.integrity).map(([name]) => name)).toEqual([]);
  expect(locked.filter(([, p]) => p.resolved).map(([name]) => name)).toEqual([]);
  expect(lockText).not.toMatch(/https?:\/\/[^"]*\.tgz/);
  expect(readFileSync(projectFile(".npmrc"), "utf8")).not.toMatch(/^\s*(registry|.*_authToken)\s*=/m);
});

test("all packages of MikroORM have one version, and there is one graphql", () => {
  const versions = locked.filter(([name]) => /\/@mikro-orm\/[^/]+$/.test(name)).map(([, p]) => p.version);
  expect(new Set(versions).size).toBe(1);
  expect(locked.filter(([name]) => name.endsWith("node_modules/graphql"))).toHaveLength(1);
});
