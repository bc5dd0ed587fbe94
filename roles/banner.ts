import type { IsolationReport } from "../infra/runner/protocol.ts";
import { readSettings, type Settings } from "../infra/telemetry/environment.ts";
import { DEFAULT_ORIGIN } from "../infra/telemetry/setting-table.ts";

export interface BannerFacts {
  settings: Settings;
  /** Where people reach this platform. */
  origin: string;
  /** The first key when this start made it; it is never shown again. */
  newKey: string | null;
  /** The start's time, which makes the example's idempotency key one of its own. */
  now: Date;
  /** Whether workloads that name no GPU have nowhere to run here. */
  gpuLacks: boolean;
  /** What guests are isolated by, or why the local host could not be asked. */
  isolation: IsolationReport | Error;
  /** Variables that start like ours and are none, each with the name that was meant, if one is near. */
  unknown: readonly { variable: string; meant: string | null }[];
}

/** What a person reads after `npm start`: addresses, the key once, something to paste, and what isolation is in force. */
export function banner({ settings, origin, newKey, now, gpuLacks, isolation, unknown }: BannerFacts): string {
  const key = newKey ?? "$NODUS_API_KEY";
  const lines = [
    "",
    "Nodus is running.",
    "",
    `  GraphQL    ${origin}/graphql   (subscriptions: graphql-ws on the same path, SSE on /graphql/stream)`,
    ...(settings.graphiql ? [`  GraphiQL   ${origin}/graphiql`] : []),
    `  REST       ${origin}/v1`,
    `  Health     ${origin}/healthz  /readyz  /metrics`,
    `  Data       ${settings.dataDir}`,
    ...toExport(settings, origin),
    `  Isolation  ${isolationLine(isolation, settings.allowUnisolated)}`,
    ...(gpuLacks ? [`  No GPU     ${NO_GPU}`] : []),
    ...unknown.map(
      ({ variable, meant }) => `  Ignored    ${variable} is no setting${meant ? `; ${meant} is one` : ""}`,
    ),
    "",
    newKey
      ? `  API key    ${newKey}\n             Shown this once. Make others with: node start.mjs keys mint`
      : "  API key    the one that the first start showed (make another with: node start.mjs keys mint)",
    "",
    "A first workload over GraphQL (header: Authorization: Bearer <key>):",
    "",
    "  mutation {",
    "    createWorkload(input: {",
    `      idempotencyKey: "first-${now.getTime()}"`,
    '      workload: { source: { command: ["sh", "-c", "echo hello; mkdir -p outputs; date > outputs/when.txt"] } }',
    "    }) { workload { id status } }",
    "  }",
    "",
    "The same over REST:",
    "",
    `  curl -sS ${origin}/v1/workloads -H "Authorization: Bearer ${key}" \\`,
    "    -H 'Content-Type: application/json' -H \"Idempotency-Key: hello-$(date +%s)\" \\",
    `    -d '{"source": {"command": ["sh", "-c", "echo hello; mkdir -p outputs; date > outputs/when.txt"]}}'`,
    "",
    "",
  ];
  return lines.join("\n");
}

/** What the other commands have to be told to find this platform, where it is not what they expect. */
function toExport({ dataDir, databaseUrl }: Settings, origin: string): string[] {
  const expected = readSettings({});
  const variables = [
    ...(databaseUrl === null && dataDir !== expected.dataDir ? [`NODUS_DATA_DIR=${shellWord(dataDir)}`] : []),
    ...(origin === DEFAULT_ORIGIN ? [] : [`NODUS_BASE_URL=${origin}`]),
  ];
  return variables.length > 0 ? [`  Commands   export ${variables.join(" ")}`] : [];
}

/** A path as a shell takes it for one word. */
function shellWord(text: string): string {
  return /^[A-Za-z0-9_./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const NO_GPU =
  "Workloads that name no GPU wait for one: set NODUS_CPU_FALLBACK=1, or submit with --cpu (compute class vm).";

/** What one of several processes says when it serves: a line, and the first key when it made that. */
export function startLine({
  name,
  address,
  newKey,
  gpuLacks,
  unknown,
}: Pick<BannerFacts, "newKey" | "gpuLacks" | "unknown"> & { name: string; address: string }): string {
  const lines = [
    `nodus ${name} listens on ${address}`,
    ...(newKey ? [`API key    ${newKey}\n           Shown this once.`] : []),
    ...(gpuLacks ? [`No GPU     ${NO_GPU}`] : []),
    ...unknown.map(({ variable, meant }) => `Ignored    ${variable} is no setting${meant ? `; ${meant} is one` : ""}`),
  ];
  return `${lines.join("\n")}\n`;
}

function isolationLine(isolation: IsolationReport | Error, allowUnisolated: boolean): string {
  if (isolation instanceof Error) return `unknown: ${isolation.message}`;
  if (isolation.level === "none")
    return `NONE, so ${allowUnisolated ? "workloads run as plain processes" : "no workload runs here"}: ${isolation.detail}`;
  const parts = [
    isolation.level,
    isolation.ownUid ? "a user of its own for each guest" : "no user of its own (not started by root)",
    isolation.seccomp ? "seccomp" : "no seccomp",
    `limits by ${isolation.limits}`,
  ];
  return parts.join(", ");
}
