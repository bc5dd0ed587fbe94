import { LIMITS } from "../kernel/limits.ts";
import { LOG_LEVELS } from "./logger.ts";
import {
  accelerators,
  apiKey,
  dollars,
  hostOrBlock,
  key256,
  listOf,
  oneOf,
  origin,
  type Parse,
  percentAsBasisPoints,
  url,
  urlOf,
  wholeNumber,
  word,
  yesOrNo,
} from "./setting-parsers.ts";

/** One environment variable: what it is called, means, and is when nobody sets it. */
export interface Setting<T> {
  readonly variable: string;
  /** The text that holds when the variable is unset or empty; null: the setting is then null. */
  readonly fallback: string | null;
  /** What the table of settings says in place of a default, where the default depends on something. */
  readonly otherwise?: string;
  readonly description: string;
  /** Its value is never printed. */
  readonly secret: boolean;
  readonly parse: Parse<T>;
}

export const SUBGRAPHS = ["compute", "sandboxes", "rl", "pools", "data"] as const;
export type SubgraphName = (typeof SUBGRAPHS)[number];

/** What a process can be; `all` is every one of them in one process. */
export const ROLES = ["all", "gateway", "worker", "intake", "host-agent", ...SUBGRAPHS] as const;
export type Role = (typeof ROLES)[number];

/** Where user commands look for the platform. */
export const DEFAULT_ORIGIN = "http://127.0.0.1:4000";

/** How a workload reaches the network when its own policy does not say. */
export const WORKLOAD_NETWORKS = ["deny", "allowlist", "open"] as const;

/** What workers do about the machine that they run on: start its host agent, use one that was started, or leave it alone. */
export const LOCAL_CAPACITIES = ["start", "attach", "off"] as const;

/** Always has a value. */
function given<T>(variable: string, fallback: string, description: string, parse: Parse<T>): Setting<T> {
  return { variable, fallback, description, secret: false, parse };
}

/** Null unless somebody sets it. */
function optional<T>(variable: string, otherwise: string, description: string, parse: Parse<T>): Setting<T | null> {
  return { variable, fallback: null, otherwise, description, secret: false, parse };
}

function secret<T>(variable: string, otherwise: string, description: string, parse: Parse<T>): Setting<T | null> {
  return { variable, fallback: null, otherwise, description, secret: true, parse };
}

const text = word(/^[^\s]+$/, "a text without spaces");
const httpUrl = url(["http", "https"]);
const httpsUrl = url(["https"]);
const mebibytes = wholeNumber(1, 4096);

/** Every setting of the platform. The README's table is printed from here. */
export const SETTINGS = {
  port: given("PORT", "4000", "Port of the HTTP server; 0 takes any free one.", wholeNumber(0, 65_535)),
  host: given("HOST", "127.0.0.1", "Address that the HTTP server listens on; `0.0.0.0` for every network.", text),
  publicUrl: optional(
    "NODUS_PUBLIC_URL",
    "the bound address",
    "Origin under which clients reach the platform; links in answers start with it.",
    httpUrl,
  ),
  dataDir: given(
    "NODUS_DATA_DIR",
    ".nodus",
    "Folder for everything that the embedded parts keep.",
    word(/./, "a path"),
  ),
  bootstrapKey: secret(
    "NODUS_BOOTSTRAP_KEY",
    "made at first start",
    "API key of the first administrator, used when the first team is created.",
    apiKey,
  ),
  databaseUrl: secret(
    "DATABASE_URL",
    "embedded PostgreSQL",
    "PostgreSQL 15 or newer to use in place of the embedded one. `NODUS_CPU_FALLBACK` is 0 then unless it is set.",
    url(["postgres", "postgresql"]),
  ),
  databasePoolSize: given(
    "NODUS_DATABASE_POOL",
    "20",
    "Most database connections of one process for commands and reads; commands of one team have half of them.",
    wholeNumber(2, 500),
  ),
  redisUrl: secret(
    "REDIS_URL",
    "PostgreSQL does it",
    "Redis for job queues, wake-ups and rate limits.",
    url(["redis", "rediss"]),
  ),
  s3Endpoint: optional(
    "S3_ENDPOINT",
    "files in the data folder",
    "S3-compatible store for objects; the next four belong to it.",
    httpUrl,
  ),
  s3Bucket: optional(
    "S3_BUCKET",
    "",
    "Bucket that holds every object.",
    word(/^[a-z0-9][a-z0-9.-]{1,62}$/, "a bucket's name"),
  ),
  s3Region: given(
    "S3_REGION",
    "us-east-1",
    "Region that requests are signed for.",
    word(/^[a-z0-9-]{1,32}$/, "a region such as us-east-1"),
  ),
  s3AccessKeyId: secret("S3_ACCESS_KEY_ID", "", "Name of the key that signs requests.", text),
  s3SecretAccessKey: secret("S3_SECRET_ACCESS_KEY", "", "The key that signs requests.", text),
  roles: given(
    "NODUS_ROLES",
    "all",
    `What this process does, as a list: ${ROLES.join(", ")}. Processes that share the work need \`DATABASE_URL\`.`,
    listOf(oneOf(ROLES)),
  ),
  subgraphUrls: given(
    "NODUS_SUBGRAPH_URLS",
    "",
    "Where a gateway finds the subgraphs that do not run in its own process, as `name=URL` pairs separated by commas.",
    listOf(urlOf(SUBGRAPHS)),
  ),
  intakeUrl: optional("NODUS_INTAKE_URL", "this process", "Base URL at which host agents reach intake.", httpUrl),
  localCapacity: given(
    "NODUS_LOCAL_CAPACITY",
    "start",
    "What workers do about their own machine: `start` its host agent, `attach` to one that runs as a process of its own, or `off`. The same for every worker.",
    oneOf(LOCAL_CAPACITIES),
  ),
  localAccelerators: given(
    "NODUS_LOCAL_ACCELERATORS",
    "",
    "Simulated accelerators of this machine for development, such as `H100:2`; offers and events say that they are simulated.",
    listOf(accelerators),
  ),
  cpuFallback: optional(
    "NODUS_CPU_FALLBACK",
    "1 with the embedded database, 0 with `DATABASE_URL`",
    "Lets a workload that names no GPU run on the CPU although its class is accelerator; at 0 it waits for a GPU. The same for every process.",
    yesOrNo,
  ),
  workloadNetwork: given(
    "NODUS_WORKLOAD_NETWORK",
    "open",
    "Network of a workload whose policy names none: deny, allowlist or open (never to private addresses).",
    oneOf(WORKLOAD_NETWORKS),
  ),
  allowPrivateHosts: given(
    "NODUS_ALLOW_PRIVATE_HOSTS",
    "",
    "Hosts, addresses or blocks that imports, connections, webhooks and guests may reach although private.",
    listOf(hostOrBlock),
  ),
  githubApiUrl: given(
    "NODUS_GITHUB_API_URL",
    "https://api.github.com",
    "GitHub's API for imports and connected accounts; a company's own GitHub has it under `/api/v3`.",
    httpsUrl,
  ),
  huggingFaceUrl: given(
    "NODUS_HUGGING_FACE_URL",
    "https://huggingface.co",
    "Hugging Face, or a mirror of it, for imports.",
    httpsUrl,
  ),
  allowUnisolated: given(
    "NODUS_ALLOW_UNISOLATED",
    "0",
    "Runs workloads as plain processes where isolation is not available. Only for code that you trust.",
    yesOrNo,
  ),
  region: given(
    "NODUS_REGION",
    "local",
    "Region that this machine's capacity is offered in.",
    word(/^[a-z0-9][a-z0-9-]{0,62}$/, "lower-case letters, digits and dashes"),
  ),
  masterKey: secret(
    "NODUS_MASTER_KEY",
    "a key file in the data folder",
    "Key that stored secrets are encrypted with: 32 bytes in base64 or hexadecimal. Needed on every process when they run on several machines.",
    key256,
  ),
  previousMasterKey: secret(
    "NODUS_MASTER_KEY_PREVIOUS",
    "none",
    "Master key from before a change: it only opens what it encrypted, until `nodus keys rotate` has run.",
    key256,
  ),
  localRateMicrosPerHour: given(
    "NODUS_LOCAL_USD_PER_HOUR",
    "0.10",
    "Price of the whole local machine for an hour, in US dollars.",
    dollars,
  ),
  platformFeeBasisPoints: given(
    "NODUS_PLATFORM_FEE_PERCENT",
    "10",
    "Platform's share on top of a supplier's price.",
    percentAsBasisPoints,
  ),
  firstWindowSeconds: given(
    "NODUS_FIRST_WINDOW_SECONDS",
    String(LIMITS.firstWindowMs / 1000),
    "Run time that must be funded before a placement starts.",
    wholeNumber(10, 86_400),
  ),
  newTeamCreditMicros: given("NODUS_NEW_TEAM_CREDIT_USD", "100", "Credit of a new team, in US dollars.", dollars),
  firstTeamHasPaymentMethod: given(
    "NODUS_FIRST_TEAM_PAYMENT_METHOD",
    "1",
    "The first team counts as having a payment method.",
    yesOrNo,
  ),
  logCaptureMib: given(
    "NODUS_LOG_CAPTURE_MIB",
    String(LIMITS.logCaptureBytes / 1024 / 1024),
    "Live log kept per run, in MiB.",
    mebibytes,
  ),
  logCommittedMib: given(
    "NODUS_LOG_COMMITTED_MIB",
    String(LIMITS.logCommittedBytes / 1024 / 1024),
    "Log committed when a run ends, in MiB; a marker follows the last byte.",
    mebibytes,
  ),
  resultRetentionDays: given(
    "NODUS_RESULT_RETENTION_DAYS",
    String(LIMITS.resultRetentionDays),
    "Days that outputs, logs and checkpoints of a workload are kept after its end.",
    wholeNumber(1, 36_500),
  ),
  diskReserveMib: given(
    "NODUS_DISK_RESERVE_MIB",
    String(LIMITS.diskReserveBytes / 1024 / 1024),
    "MiB of the data folder's disk that are kept for work that runs already: below it no workload is admitted; 0 admits always.",
    wholeNumber(0, 1_048_576),
  ),
  requestsPerKeyPerSecond: given(
    "NODUS_REQUESTS_PER_KEY_PER_SECOND",
    String(LIMITS.requestsPerKeyPerSecond),
    "Requests that one API key may make in a second.",
    wholeNumber(1, 1_000_000),
  ),
  streamsPerTeam: given(
    "NODUS_STREAMS_PER_TEAM",
    String(LIMITS.openStreamsPerTeam),
    "Streams of one team that one gateway holds open: WebSockets, server-sent events, files that come or go.",
    wholeNumber(1, 1_000_000),
  ),
  corsOrigins: given(
    "NODUS_CORS_ORIGINS",
    "",
    "Browser origins that may call the API, as a list; `*` for all.",
    listOf(origin),
  ),
  graphiql: optional("NODUS_GRAPHIQL", "1 unless NODE_ENV is production", "Serves GraphiQL at /graphiql.", yesOrNo),
  introspection: optional(
    "NODUS_INTROSPECTION",
    "1 unless NODE_ENV is production",
    "Answers introspection queries.",
    yesOrNo,
  ),
  persistedOperations: optional(
    "NODUS_PERSISTED_OPERATIONS",
    "none",
    "File with registered operations, in the format of Apollo's persisted query manifests.",
    text,
  ),
  persistedOnly: given(
    "NODUS_PERSISTED_ONLY",
    "0",
    "Runs registered GraphQL operations only and refuses every other document.",
    yesOrNo,
  ),
  production: given(
    "NODE_ENV",
    "development",
    "`production` turns developers' comforts off by default.",
    (value: string) => value === "production",
  ),
  logLevel: given(
    "NODUS_LOG_LEVEL",
    "info",
    `Least level that is logged: ${LOG_LEVELS.join(", ")}.`,
    oneOf(LOG_LEVELS),
  ),
  drainSeconds: given(
    "NODUS_DRAIN_SECONDS",
    "25",
    "Longest time that a stopping process takes to finish what it began.",
    wholeNumber(1, 3_600),
  ),
  clientBaseUrl: optional(
    "NODUS_BASE_URL",
    DEFAULT_ORIGIN,
    "Platform that the user commands (`submit`, `logs`, `ls`, `cancel`) talk to.",
    httpUrl,
  ),
  clientApiKey: secret("NODUS_API_KEY", "", "API key of the user commands.", apiKey),
} as const;
