import { isIP } from "node:net";
import type { ConnectionKind } from "./connection.entity.ts";

/** Where a database is and how to log in there. */
export interface DatabaseLogin {
  /** A host name, or an address without brackets. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Authority that signed the server's certificate, in PEM; null for the usual ones. */
  caPem: string | null;
  /** Whether the login is bound to the TLS channel: never, where the server offers that, or else not at all. */
  channelBinding: "disable" | "prefer" | "require";
}

/** What a secret holds, by the kind of its connection. */
export type Credential = { kind: "database"; login: DatabaseLogin } | { kind: "wandb"; apiKey: string };

/** The secret's text does not have the form of the kind. `message` says what is missing and repeats nothing of it. */
export class WrongShape extends Error {
  override readonly name = "WrongShape";
}

const DEFAULT_PORT = 5432;
const DATABASE_LENGTH = 63;

/** Members of the JSON form; the first of each kind must be there. */
const MEMBERS: Record<
  Exclude<ConnectionKind, "wandb">,
  { required: string[]; optional: string[]; bareUrl: boolean }
> = {
  postgres: { required: ["postgres_url"], optional: ["ca_cert"], bareUrl: true },
  neon: { required: ["postgres_url"], optional: ["api_key", "ca_cert"], bareUrl: true },
  supabase: { required: ["postgres_url", "project_url", "service_key"], optional: ["ca_cert"], bareUrl: false },
};

/** The form that a secret of each kind has, as an advice to a person. */
export const SECRET_FORMS: Readonly<Record<ConnectionKind, string>> = {
  postgres: formOf(MEMBERS.postgres),
  neon: formOf(MEMBERS.neon),
  supabase: formOf(MEMBERS.supabase),
  wandb: "Write the secret as the API key alone: 8 to 512 printable ASCII characters without a space.",
};

function formOf({ required, optional, bareUrl }: { required: string[]; optional: string[]; bareUrl: boolean }): string {
  const address = bareUrl ? "a postgres:// address with user and password alone, or as " : "";
  return `Write the secret as ${address}a JSON object with ${required.join(", ")} and, if needed, ${optional.join(", ")}.`;
}

/** Reads a secret's text as what a connection of this kind needs; throws `WrongShape`. */
export function readCredential(kind: ConnectionKind, text: string): Credential {
  if (kind === "wandb") {
    if (!/^[\x21-\x7e]{8,512}$/.test(text)) throw new WrongShape("The secret is not an API key alone.");
    return { kind: "wandb", apiKey: text };
  }
  const { required, optional, bareUrl } = MEMBERS[kind];
  if (bareUrl && !text.trimStart().startsWith("{"))
    return { kind: "database", login: { ...readPostgresUrl(text), caPem: null } };
  const members = readMembers(text, required, optional);
  if (kind === "supabase") requireHttps(members.project_url!);
  const caPem = members.ca_cert === undefined ? null : readCertificates(members.ca_cert);
  return { kind: "database", login: { ...readPostgresUrl(members.postgres_url!), caPem } };
}

function readMembers(text: string, required: string[], optional: string[]): Record<string, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new WrongShape("The secret is not JSON."); // the parser's own message would quote it
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new WrongShape("The secret is not a JSON object.");
  const members = parsed as Record<string, unknown>;
  for (const name of required)
    if (members[name] === undefined) throw new WrongShape(`The secret has no member ${name}.`);
  for (const [name, value] of Object.entries(members)) {
    if (!required.includes(name) && !optional.includes(name))
      throw new WrongShape(`The secret has a member that is none of ${[...required, ...optional].join(", ")}.`);
    if (typeof value !== "string" || value === "") throw new WrongShape(`The secret's member ${name} is not a text.`);
  }
  return members as Record<string, string>;
}

function readPostgresUrl(text: string): Omit<DatabaseLogin, "caPem"> {
  const url = URL.parse(text);
  if (!url || /\s/.test(text) || !["postgres:", "postgresql:"].includes(url.protocol))
    throw new WrongShape("The database's address is not a postgres:// URL.");
  if (url.hash) throw new WrongShape("The database's address has a # part; write # as %23.");
  const host = readHost(url.hostname);
  const user = decoded(url.username, "user");
  const password = decoded(url.password, "password");
  const database = url.pathname.length > 1 ? decoded(url.pathname.slice(1), "database") : user;
  if (database.includes("/") || Buffer.byteLength(database) > DATABASE_LENGTH)
    throw new WrongShape("The database's address does not name one database.");
  return {
    host,
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    user,
    password,
    database,
    channelBinding: readQuery(url.searchParams),
  };
}

function readHost(hostname: string): string {
  const host = hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  // An address in any other spelling, such as a single number, would be read as one by resolvers.
  if (isIP(host) !== 0) return host;
  if (/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(host)) return host;
  throw new WrongShape("The database's address does not name one host.");
}

function decoded(part: string, what: string): string {
  let text: string;
  try {
    text = decodeURIComponent(part);
  } catch {
    throw new WrongShape(`The ${what} in the database's address is not percent-encoded UTF-8.`);
  }
  if (text === "") throw new WrongShape(`The database's address has no ${what}.`);
  if (text.includes("\0")) throw new WrongShape(`The ${what} in the database's address holds NUL.`);
  return text;
}

/** TLS with a verified certificate and host is used whatever `sslmode` says, so its weaker modes are refused. */
const SSL_MODES = ["require", "verify-ca", "verify-full"];
const CHANNEL_BINDINGS = ["disable", "prefer", "require"] as const;

/** How the login is bound to the channel. */
function readQuery(query: URLSearchParams): DatabaseLogin["channelBinding"] {
  for (const name of query.keys()) {
    if (name !== "sslmode" && name !== "channel_binding")
      throw new WrongShape("The database's address has a parameter other than sslmode and channel_binding.");
    if (query.getAll(name).length > 1) throw new WrongShape(`The database's address repeats ${name}.`);
  }
  const sslmode = query.get("sslmode");
  if (sslmode !== null && !SSL_MODES.includes(sslmode))
    throw new WrongShape(`sslmode must be one of ${SSL_MODES.join(", ")}.`);
  const given = query.get("channel_binding") ?? "disable";
  const binding = CHANNEL_BINDINGS.find((one) => one === given);
  if (!binding) throw new WrongShape(`channel_binding must be one of ${CHANNEL_BINDINGS.join(", ")}.`);
  return binding;
}

function requireHttps(text: string): void {
  const url = URL.parse(text);
  if (url?.protocol !== "https:" || url.username || url.password)
    throw new WrongShape("The secret's member project_url is not an https:// address.");
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

function readCertificates(text: string): string {
  const found = text.match(CERTIFICATE);
  if (!found || text.replace(CERTIFICATE, "").trim() !== "")
    throw new WrongShape("The secret's member ca_cert is not one or more certificates in PEM.");
  return text;
}
