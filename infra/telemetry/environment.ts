import path from "node:path";
import { parameterProblem } from "./database-url.ts";
import { Unacceptable } from "./setting-parsers.ts";
import { type Role, SETTINGS, type Setting } from "./setting-table.ts";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

type Table = typeof SETTINGS;
type Parsed = { readonly [K in keyof Table]: Table[K] extends Setting<infer T> ? T : never };
/** Settings whose default depends on other settings. */
interface Derived {
  readonly cpuFallback: boolean;
  readonly graphiql: boolean;
  readonly introspection: boolean;
}

/** Everything that an operator can set, parsed and checked together. */
export type Settings = Omit<Parsed, keyof Derived> & Derived;

/** The settings are not acceptable; the message has one line for each variable at fault. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The settings are not acceptable:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Reads the environment, once, at start; nothing else in the platform does. Empty variables count as unset. Throws
 * `SettingsError` with every problem at once.
 */
export function readSettings(environment: Environment = process.env): Settings {
  const problems: string[] = [];
  const parsed: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    const text = environment[setting.variable] || setting.fallback;
    parsed[name] = text === null ? null : parseOne(setting, text, problems);
  }
  if (problems.length === 0) problems.push(...contradictions(parsed as Parsed));
  if (problems.length > 0) throw new SettingsError(problems);
  return derive(parsed as Parsed);
}

/** The environment of a process whose command line names its role. Throws `SettingsError` where `NODUS_ROLES` says another. */
export function environmentFor(role: Role, environment: Environment = process.env): Environment {
  const { variable } = SETTINGS.roles;
  const given = environment[variable];
  if (given && given !== role)
    throw new SettingsError([`${variable} is ${given}, and the command line says ${role}: unset one of them.`]);
  return { ...environment, [variable]: role };
}

/** Variables that start like ours and are none: misspelt, most likely. Each with the nearest real name, if one is near. */
export function unknownVariables(environment: Environment = process.env): { variable: string; meant: string | null }[] {
  const known = Object.values(SETTINGS).map((setting) => setting.variable);
  return Object.keys(environment)
    .filter((variable) => variable.startsWith("NODUS_") && !known.includes(variable as (typeof known)[number]))
    .map((variable) => ({ variable, meant: nearest(variable, known) }));
}

/** The table of settings for the README, in Markdown. */
export function settingsTable(): string {
  const rows = (Object.values(SETTINGS) as Setting<unknown>[]).map((setting) => {
    const value = setting.fallback ? `\`${setting.fallback}\`` : setting.otherwise || "";
    return `| \`${setting.variable}\` | ${value} | ${setting.description} |`;
  });
  return ["| variable | default | meaning |", "| --- | --- | --- |", ...rows].join("\n");
}

function parseOne(setting: Setting<unknown>, text: string, problems: string[]): unknown {
  try {
    return setting.parse(text);
  } catch (error) {
    if (!(error instanceof Unacceptable)) throw error;
    const value = setting.secret ? "" : ` (it is "${text}")`;
    problems.push(`${setting.variable} ${error.message}${value}.`);
    return null;
  }
}

/** What single variables cannot show. */
function contradictions(parsed: Parsed): string[] {
  const problems: string[] = [];
  const s3 = {
    S3_ENDPOINT: parsed.s3Endpoint,
    S3_BUCKET: parsed.s3Bucket,
    S3_ACCESS_KEY_ID: parsed.s3AccessKeyId,
    S3_SECRET_ACCESS_KEY: parsed.s3SecretAccessKey,
  };
  const missing = Object.entries(s3)
    .filter(([, value]) => value === null)
    .map(([variable]) => variable);
  if (missing.length > 0 && missing.length < 4)
    problems.push(`${missing.join(" and ")} must be set too: an S3 store needs ${Object.keys(s3).join(", ")}.`);
  const twice = parsed.roles.find((role, at) => parsed.roles.indexOf(role) < at);
  if (twice)
    problems.push(
      `NODUS_ROLES names ${twice} twice: a process does each once. Start another process for a second one.`,
    );
  if (parsed.roles.includes("all") && parsed.roles.length > 1 && !twice)
    problems.push("NODUS_ROLES is all, or a list of the others: all has every one of them.");
  const placedTwice = parsed.subgraphUrls.find(([name], at, all) => all.findIndex(([other]) => other === name) < at);
  if (placedTwice)
    problems.push(`NODUS_SUBGRAPH_URLS names ${placedTwice[0]} twice: give it one URL, of a load balancer if need be.`);
  if (parsed.roles.length === 0) problems.push("NODUS_ROLES names no role; leave it unset for all of them.");
  const apart = !parsed.roles.includes("all") && parsed.roles.some((role) => role !== "host-agent");
  if (apart && parsed.databaseUrl === null)
    problems.push("DATABASE_URL must be set when NODUS_ROLES is not all: separate processes share one PostgreSQL.");
  const parameter = parsed.databaseUrl === null ? null : parameterProblem(parsed.databaseUrl);
  if (parameter !== null) problems.push(parameter);
  if (parsed.logCaptureMib > parsed.logCommittedMib)
    problems.push("NODUS_LOG_CAPTURE_MIB must not be above NODUS_LOG_COMMITTED_MIB.");
  return problems;
}

function derive(parsed: Parsed): Settings {
  return Object.freeze({
    ...parsed,
    dataDir: path.resolve(parsed.dataDir),
    cpuFallback: parsed.cpuFallback ?? parsed.databaseUrl === null,
    graphiql: parsed.graphiql ?? !parsed.production,
    introspection: parsed.introspection ?? !parsed.production,
  });
}

function nearest(name: string, known: readonly string[]): string | null {
  const ranked = known.map((candidate) => ({ candidate, distance: editDistance(name, candidate) }));
  ranked.sort((a, b) => a.distance - b.distance);
  return ranked[0]!.distance <= 3 ? ranked[0]!.candidate : null;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
