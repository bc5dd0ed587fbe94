import { expect, test } from "vitest";
import { sourceFiles } from "../support/sources.ts";

const files = new Map(sourceFiles().map((source) => [source.file, source]));

/** Packages, and files of the project, that are loaded together with a file. */
function loadedWith(start: string): Set<string> {
  const loaded = new Set<string>();
  const visit = (file: string) => {
    if (loaded.has(file)) return;
    loaded.add(file);
    for (const { target, ofProject, typeOnly, lazy } of files.get(file)!.imports) {
      if (typeOnly || lazy) continue;
      if (ofProject && target.endsWith(".ts")) visit(target);
      else loaded.add(target);
    }
  };
  visit(start);
  return loaded;
}

/** Heavy packages that a file loads. */
function heavy(start: string): string[] {
  const loaded = loadedWith(start);
  return HEAVY.filter((name) => loaded.has(name));
}

/** What takes longest to load, or most memory, and is needed by some roles only. */
const HEAVY = [
  "@graphql-hive/router-runtime",
  "@graphql-tools/federation",
  "@theguild/federation-composition",
  "@apollo/server",
  "@aws-sdk/client-s3",
  "@duckdb/node-api",
  "@mikro-orm/postgresql",
  "bullmq",
  "type-graphql",
];

test("what a process always needs is there without the router, the queue, the bucket and the composition", () => {
  expect(heavy("roles/start-process.ts")).toEqual(["@mikro-orm/postgresql", "type-graphql"]);
});

test("a gateway adds the router, a worker the queue", () => {
  expect(heavy("roles/serve-gateway.ts")).toContain("@graphql-hive/router-runtime");
  expect(heavy("roles/serve-gateway.ts")).not.toContain("bullmq");
  expect(heavy("roles/work.ts")).toContain("bullmq");
  expect(heavy("roles/work.ts")).not.toContain("@graphql-hive/router-runtime");
});

test("the command line, a keeper of the host agent and the agent itself load none of the heavy packages", () => {
  for (const start of ["nodus.ts", "roles/up.ts", "roles/host-agent.ts", "infra/runner/host/main.ts"])
    expect([start, heavy(start)]).toEqual([start, []]);
});

test("tables in files are read and written in a process of their own, and only that one loads the engine", () => {
  expect(heavy("roles/work.ts")).not.toContain("@duckdb/node-api");
});
