import { parseArgs } from "node:util";
import type { PlatformClient } from "../support/platform-client.ts";
import { loggedErrors } from "./logged-errors.ts";
import { type Effort, fuzzGraphql, fuzzRest } from "./made-up-requests.ts";
import { type Environment, environmentWith, publishedVersions, Unavailable } from "./python.ts";
import { checkRelease } from "./release-checks.ts";
import { CLIENT_PACKAGE, newestBeforeOne, RELEASES, type Release, requirementsOf } from "./releases.ts";
import { type Column, checkTable, failuresOf, fuzzLines } from "./report.ts";
import type { Existing } from "./rest-config.ts";
import { openWorld, type World } from "./world.ts";

const USAGE = "usage: npm run test:clients -- [--release 0.11.0]… [--examples 60] [--seed 7] [--only clients|requests]";
const say = (line: string) => process.stdout.write(`${line}\n`);

/** What was asked for on the command line. */
interface Wish extends Effort {
  readonly releases: readonly Release[];
  readonly clients: boolean;
  readonly requests: boolean;
}

process.exitCode = await main().catch((error: Error) => {
  if (!(error instanceof Unavailable)) throw error;
  say(`skipped: ${error.message}`);
  return 0;
});

/** The exit code: 0 when everything held, 1 when something did not. */
async function main(): Promise<number> {
  const wish = readWish();
  if (!wish) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const clients = wish.clients ? await installClients(wish.releases) : [];
  const schemathesis = wish.requests ? await environmentWith("requirements-schemathesis.txt") : null;
  say("starting a platform …");
  const world = await openWorld();
  leaveNothingBehind(world);
  try {
    const failures = await checkClients(world, clients);
    const faults = schemathesis ? await makeUpRequests(world, schemathesis, wish) : 0;
    const errors = loggedErrors(world.platform.output);
    for (const error of errors) say(`the platform logged an error: ${error}`);
    say(`\n${failures} failed checks, ${faults} failures of made-up requests, ${errors.length} kinds of logged errors`);
    return failures + faults + errors.length === 0 ? 0 : 1;
  } finally {
    await world.close();
  }
}

/** Whoever is told to stop stops the platform first. */
function leaveNothingBehind(world: World): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => void world.close().finally(() => process.exit(code)));
}

/** Null for an option that there is not, and for a value that means nothing. */
function readWish(): Wish | null {
  const values = optionsGiven();
  if (values === null) return null;
  const releases = RELEASES.filter((release) => values.release.includes(release));
  const [examplesPerOperation, seed] = [Number(values.examples), Number(values.seed)];
  const isGood = releases.length === values.release.length && examplesPerOperation > 0 && Number.isInteger(seed);
  if (!isGood || !["clients", "requests", undefined].includes(values.only)) return null;
  return {
    releases,
    examplesPerOperation,
    seed,
    clients: values.only !== "requests",
    requests: values.only !== "clients",
  };
}

function optionsGiven() {
  try {
    return parseArgs({
      options: {
        release: { type: "string", multiple: true, default: [...RELEASES] },
        examples: { type: "string", default: "60" },
        seed: { type: "string", default: String(Date.now() % 1_000_000) },
        only: { type: "string" },
      },
    }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`); // such as an option that there is not
    return null;
  }
}

interface Installed {
  release: Release;
  environment: Environment;
}

async function installClients(releases: readonly Release[]): Promise<Installed[]> {
  const installed: Installed[] = [];
  for (const release of releases)
    installed.push({ release, environment: await environmentWith(requirementsOf(release)) });
  const newest = newestBeforeOne(await publishedVersions(installed[0]!.environment, CLIENT_PACKAGE));
  if (newest && newest !== RELEASES[0]) say(`note: ${CLIENT_PACKAGE} ${newest} is newer than what is checked here`);
  return installed;
}

/** How many checks failed. */
async function checkClients(world: World, clients: readonly Installed[]): Promise<number> {
  if (clients.length === 0) return 0;
  const columns: Column[] = [];
  for (const { release, environment } of clients) {
    say(`${CLIENT_PACKAGE} ${release} …`);
    columns.push({ release, results: await checkRelease(environment, world) });
  }
  const failures = failuresOf(columns);
  say(`\n${[checkTable(columns), ...failures].join("\n")}`);
  return failures.length;
}

/** How many different failures there were. */
async function makeUpRequests(world: World, schemathesis: Environment, effort: Effort): Promise<number> {
  say(`\nmade-up requests, seed ${effort.seed} …`);
  const existing = await existingThings(world);
  const rest = await fuzzRest(schemathesis, world, existing, effort);
  say(`\n${fuzzLines(rest)}\nleft out, since this release answers 501: ${rest.unserved.join(", ")}`);
  const graphql = await fuzzGraphql(schemathesis, world, existing, effort);
  say(`\n${fuzzLines(graphql)}`);
  return rest.failures + graphql.failures;
}

/** Things of the team that requests may name. */
async function existingThings({ platform, settings }: World): Promise<Existing> {
  const client = platform.admin;
  const made = async (operation: string, ask: Parameters<PlatformClient["rest"]>[1]) => {
    const { status, body } = await client.rest(operation, ask);
    if (status > 299) throw new Error(`${operation} answered ${status}: ${JSON.stringify(body)}`);
    return body;
  };
  const script = "echo said; mkdir outputs; echo kept > outputs/kept.txt";
  const workload = await made("createWorkload", {
    body: { source: { command: ["sh", "-c", script] } },
    headers: { "idempotency-key": crypto.randomUUID() },
  });
  const octets = { "content-type": "application/octet-stream" };
  const asset = await made("uploadAsset", { query: { name: "rows.csv" }, body: "a\n1\n", headers: octets });
  const pool = await made("createPool", { body: { name: "of the requests" } });
  await made("putSecret", { body: { name: "OF_THE_REQUESTS", value: settings.databaseSecret } });
  const link = { name: "of-the-requests", kind: "postgres", secret: "OF_THE_REQUESTS" };
  const connection = await made("createConnection", { body: link });
  return {
    workloads: [workload.id],
    outputs: ["outputs.tar"],
    assets: [asset.id],
    pools: [pool.id],
    connections: [connection.id, "of-the-requests"],
    secrets: ["OF_THE_REQUESTS"],
  };
}
