import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Environment } from "./python.ts";
import { writeFuzzedContract } from "./rest-contract.ts";
import type { World } from "./world.ts";

const TIME_LIMIT_MS = 30 * 60_000;
/** How often a parameter names something that exists, so that requests get further than `not_found`. */
const EXISTING_SHARE = 0.6;

const HOOKS = path.join(import.meta.dirname, "python", "graphql_hooks.py");

/** What must hold for every answer. */
const REST_CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "ignored_auth",
];

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

/** Ids that exist, by the name of what they are ids of. */
export type Existing = Readonly<Record<string, readonly string[]>>;

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
    ...["--phases", "coverage,fuzzing,stateful", "--checks", REST_CHECKS.join(",")],
  ];
  const report = await schemathesis(environment, world, "REST by its contract", args, effort);
  return { ...report, unserved };
}

/** Requests made from the GraphQL schema: none may be answered as a fault. */
export function fuzzGraphql(environment: Environment, world: World, effort: Effort): Promise<FuzzReport> {
  const args = ["run", `${world.platform.origin}/graphql`, "--phases", "fuzzing", "--checks", "errors_are_refusals"];
  return schemathesis(environment, world, "GraphQL by its schema", args, effort);
}

async function schemathesis(
  environment: Environment,
  world: World,
  title: string,
  args: readonly string[],
  { seed, examplesPerOperation }: Effort,
): Promise<FuzzReport> {
  const reportFile = path.join(world.folder, `${title.split(" ")[0]}.json`);
  const output = await outputOf(environment.program("schemathesis"), world, [
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

function outputOf(program: string, world: World, args: readonly string[]): Promise<string> {
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

/** Which parameters take which ids. */
const PARAMETERS: readonly [pathPattern: string, parameter: string, ids: string][] = [
  ["^/v1/workloads/", "path.id", "workloads"],
  ["/outputs/", "path.name", "outputs"],
  ["^/v1/assets/", "path.id", "assets"],
  ["^/v1/pools/", "path.id", "pools"],
  ["^/v1/connections/", "path.id", "connections"],
  ["^/v1/secrets/", "path.name", "secrets"],
];

function restConfig(existing: Existing, unserved: readonly string[]): string {
  const lines = ["[dictionaries]"];
  for (const [name, values] of Object.entries(existing)) lines.push(`${name} = { values = ${JSON.stringify(values)} }`);
  for (const [pathPattern, parameter, ids] of PARAMETERS)
    lines.push(
      "[[operations]]",
      `include-path-regex = ${JSON.stringify(pathPattern)}`,
      `parameters = { ${JSON.stringify(parameter)} = { dictionary = "${ids}", probability = ${EXISTING_SHARE} } }`,
    );
  lines.push("[[operations]]", `include-operation-id = ${JSON.stringify(unserved)}`, "enabled = false");
  return `${lines.join("\n")}\n`;
}
