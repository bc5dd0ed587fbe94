import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";

/** A structured logger: one JSON object a line. Give it fields first, then a sentence. */
export type Logger = PinoLogger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  level: LogLevel;
  /** Which process writes, such as `platform` or `worker`. */
  role: string;
  /** Where lines go; standard output by default. */
  destination?: DestinationStream;
}

/** Member names whose values never reach a log, wherever they stand in the first three levels of an entry. */
const SECRET_MEMBERS = [
  "authorization",
  "cookie",
  "password",
  "secret",
  "secretAccessKey",
  "token",
  "apiKey",
  "api_key",
  "masterKey",
  "connectionString",
  "databaseUrl",
  "redisUrl",
];

const REDACTED = "[redacted]";

/** The process's logger. Secrets are left out by member name, and by shape inside texts. */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: { role: options.role, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.headers.${name}`]),
        censor: REDACTED,
      },
      serializers: { err: serializeError },
      hooks: { streamWrite: withoutSecrets },
    },
    options.destination ?? process.stdout,
  );
}

/** Takes credentials out of a finished line: API keys, bearer tokens, and passwords inside connection strings. */
export function withoutSecrets(line: string): string {
  return line
    .replace(/\bnk_[A-Za-z0-9_-]{8,}/g, `nk_${REDACTED}`)
    .replace(/\b(Bearer|Basic) [A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${REDACTED}`)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/[^\s:@/"]*):[^\s@/"]+@/gi, `$1:${REDACTED}@`);
}

/** An error with its causes. Texts of database errors stay, their `detail` (a whole row) does not. */
function serializeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: serializeError(error.cause) }),
  };
}
