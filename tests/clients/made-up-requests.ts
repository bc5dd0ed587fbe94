import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Environment } from "./python.ts";
import { type Existing, restConfig } from "./rest-config.ts";
import { writeFuzzedContract } from "./rest-contract.ts";
import type { World } from "./world.ts";

const TIME_LIMIT_MS = 30 * 60_000;

const HOOKS = path.join(import.meta.dirname, "python", "graphql_hooks.py");

/** How much of it, and from which seed. */
export interface Effort {
  readonly seed: number;
  /** Requests made up for each operation, besides those at the edges of its documented values. */
  readonly examplesPerOperation: number;
}

/** What a round of made-up requests found. */
export interface FuzzReport {
  readonly title: string;
  readonly requests: number;
  readonly operations: number;
  /** How many different failures there are. */
  readonly failures: number;
  /** What failed, with requests that show it again; empty when nothing did. */
  readonly evidence: string;
  /** The program's own summary, as it printed it. */
  readonly summary: string;
}

/** Thousands of requests made from the REST contract: none may be answered as a fault or off contract. */
export async function fuzzRest(
  environment: Environment,
  world: World,
  existing: Existing,
  effort: Effort,
): Promise<FuzzReport & { unserved: readonly string[] }> {
  const { file, unserved } = writeFuzzedContract(world.folder);
  const config = path.join(world.folder, "rest.toml");
  writeFileSync(config, restConfig(existing, unserved));
  const args = [
    ...["--config-file", config, "run", file, "--url", world.platform.origin],
    ...["--phases", "coverage,fuzzing,stateful"],
  ];
  const report = await schemathesis(environment, world, "REST by its contract", args, effort);
  return { ...report, unserved };
}

/** Requests made from the GraphQL schema: none may be answered as a fault. */
export function fuzzGraphql(
  environment: Environment,
  world: World,
  existing: Existing,
  effort: Effort,
): Promise<FuzzReport> {
  const ids = { NODUS_CLIENTS_IDS: JSON.stringify(Object.values(existing).flat()) };
  const args = ["run", `${world.platform.origin}/graphql`, "--phases", "fuzzing", "--checks", "errors_are_refusals"];
  return schemathesis(environment, world, "GraphQL by its schema", args, effort, ids);
}

async function schemathesis(
  environment: Environment,
  world: World,
  title: string,
  args: readonly string[],
  { seed, examplesPerOperation }: Effort,
  variables: Readonly<Record<string, string>> = {},
): Promise<FuzzReport> {
  const reportFile = path.join(world.folder, `${title.split(" ")[0]}.json`);
  const output = await outputOf(environment.program("schemathesis"), world, variables, [
    ...args,
    ...["--header", `Authorization: Bearer ${world.apiKey}`, "--seed", String(seed)],
    ...["--max-examples", String(examplesPerOperation), "--continue-on-failure", "--request-timeout", "60"],
    ...["--generation-database", "none", "--suppress-health-check", "all", "--no-color"],
    ...["--report", "json", "--report-json-path", reportFile],
  ]);
  const report = JSON.parse(readFileSync(reportFile, "utf8")) as Report;
  return {
    title,
    requests: report.test_cases.generated,
    operations: report.operations.tested,
    failures: report.test_cases.unique_failures + report.errors.length,
    evidence: section(output, "FAILURES") + section(output, "ERRORS"),
    summary: section(output, "SUMMARY"),
  };
}

/** The part of the program's report that is read here. */
interface Report {
  operations: { tested: number };
  test_cases: { generated: number; unique_failures: number };
  errors: object[];
}

/** The part of the printed report under a heading, such as `==== SUMMARY ====`. */
function section(output: string, heading: string): string {
  const lines = output.split("\n");
  const isHeading = (line: string) => /^=+ .+ =+$/.test(line);
  const start = lines.findIndex((line) => isHeading(line) && line.includes(` ${heading} `));
  if (start < 0) return "";
  const length = lines.slice(start + 1).findIndex(isHeading);
  return lines.slice(start + 1, length < 0 ? undefined : start + 1 + length).join("\n");
}

function outputOf(
  program: string,
  world: World,
  variables: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<string> {
  const child = spawn(program, args, {
    cwd: world.folder,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIME_LIMIT_MS,
    env: {
      PATH: process.env.PATH,
      HOME: world.folder,
      COLUMNS: "120",
      PYTHONDONTWRITEBYTECODE: "1",
      SCHEMATHESIS_HOOKS: HOOKS,
      ...variables,
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    // It ends with 1 when it found something, and with more when it could not do its work.
    child.once("close", (code) => {
      if (code === 0 || code === 1) resolve(output);
      else reject(new Error(`schemathesis ended with ${code ?? "a signal"}:\n${output.slice(-4_000)}`));
    });
  });
}
