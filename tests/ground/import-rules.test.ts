import { expect, test } from "vitest";
import { type SourceFile, sourceFiles } from "../support/sources.ts";

const sources = sourceFiles();
const code = sources.filter((source) => !source.isTest);

/** Imports of `files` that `allowed` does not let pass, as readable lines. */
function forbidden(
  files: readonly SourceFile[],
  allowed: (target: string, ofProject: boolean, from: string) => boolean,
): string[] {
  return files.flatMap(({ file, imports }) =>
    imports.filter((i) => !allowed(i.target, i.ofProject, file)).map((i) => `${file} imports ${i.target}`),
  );
}

const within = (...folders: string[]) =>
  code.filter(({ file }) => folders.some((folder) => file.startsWith(`${folder}/`)));
const startsWithAny = (target: string, ...starts: string[]) => starts.some((start) => target.startsWith(start));

/** The composition root: the command line, and what each server role is put together from. */
const isRoot = (file: string) => file === "nodus.ts" || startsWithAny(file, "roles/", "cli/");

test("the sources are found", () => {
  expect(code.length).toBeGreaterThan(50);
  expect(sources.filter((source) => source.isTest).length).toBeGreaterThan(10);
});

test("the kernel imports nothing but itself, Node's own modules and uuid", () => {
  const ok = (target: string) => startsWithAny(target, "infra/kernel/", "node:") || target === "uuid";
  expect(forbidden(within("infra/kernel"), ok)).toEqual([]);
});

test("a machine imports only the kernel", () => {
  const machines = code.filter(({ file }) => file.endsWith(".machine.ts"));
  expect(forbidden(machines, (target) => target.startsWith("infra/kernel/"))).toEqual([]);
});

test("infra is below the domain and does not import it", () => {
  expect(forbidden(within("infra"), (target, ofProject) => !ofProject || target.startsWith("infra/"))).toEqual([]);
});

test("domains meet only at published.ts", () => {
  const domainOf = (file: string) => file.split("/")[1];
  const ok = (target: string, _: boolean, from: string) =>
    !target.startsWith("subgraphs/") ||
    domainOf(target) === domainOf(from) ||
    /^subgraphs\/[a-z]+\/published\.ts$/.test(target);
  expect(forbidden(within("subgraphs"), ok)).toEqual([]);
});

test("what a domain publishes are types and ports: published.ts imports no implementation", () => {
  const published = code.filter(({ file }) => /^subgraphs\/[a-z]+\/published\.ts$/.test(file));
  const lines = published.flatMap(({ file, imports }) =>
    imports
      .filter(
        (i) =>
          !i.typeOnly && i.ofProject && !i.target.startsWith("infra/kernel/") && !i.target.endsWith("/published.ts"),
      )
      .map((i) => `${file} imports ${i.target}`),
  );
  expect(lines).toEqual([]);
});

test("subgraphs and intake do not import the faces or the workers", () => {
  const ok = (target: string) =>
    !startsWithAny(target, "gateway/", "rest-compat/", "workers/") && target !== "nodus.ts";
  expect(forbidden(within("subgraphs", "intake"), ok)).toEqual([]);
});

test("the gateway and the REST layer reach the domain through the graph alone", () => {
  const ok = (target: string) => !startsWithAny(target, "subgraphs/", "workers/", "infra/db/");
  expect(forbidden(within("gateway", "rest-compat"), ok)).toEqual([]);
});

test("drivers are used from workers and the composition root, and no supplier imports another", () => {
  const supplierOf = (file: string) => /^infra\/drivers\/([^/]+)\//.exec(file)?.[1];
  const ok = (target: string, _: boolean, from: string) => {
    const supplier = supplierOf(target);
    if (!supplier) return true; // the contract itself
    return supplier === supplierOf(from) || from.startsWith("workers/") || isRoot(from);
  };
  expect(forbidden(code, ok)).toEqual([]);
});

test("bullmq is imported in infra/queue only", () => {
  expect(forbidden(sources, (target, _, from) => target !== "bullmq" || from.startsWith("infra/queue/"))).toEqual([]);
});

test("nobody but tests imports tests, except the bench, which the command line loads", () => {
  const ok = (target: string, _: boolean, from: string) =>
    !(target.startsWith("tests/") || target.endsWith(".test.ts")) || (isRoot(from) && target.startsWith("tests/load/"));
  expect(forbidden(code, ok)).toEqual([]);
  expect(forbidden(sources, (target) => !target.endsWith(".test.ts"))).toEqual([]);
});

test("no file only passes on what others export", () => {
  expect(sources.filter((source) => source.onlyPassesOn).map(({ file }) => file)).toEqual([]);
});

test("no import leads back to where it began", () => {
  expect(cycles(code)).toEqual([]);
});

/** One cycle of what remains after compilation for each back edge of a depth-first walk. */
function cycles(files: readonly SourceFile[]): string[] {
  const targets = new Map(
    files.map(({ file, imports }) => [file, imports.filter((i) => i.ofProject && !i.typeOnly).map((i) => i.target)]),
  );
  const found: string[] = [];
  const finished = new Set<string>();
  const path: string[] = [];
  const visit = (file: string) => {
    if (finished.has(file)) return;
    const seenAt = path.indexOf(file);
    if (seenAt >= 0) {
      found.push([...path.slice(seenAt), file].join(" → "));
      return;
    }
    path.push(file);
    for (const target of targets.get(file) ?? []) visit(target);
    path.pop();
    finished.add(file);
  };
  for (const file of targets.keys()) visit(file);
  return found;
}
