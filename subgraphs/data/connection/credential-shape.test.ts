import fc from "fast-check";
import { expect, test } from "vitest";
import type { ConnectionKind } from "./connection.entity.ts";
import { type DatabaseLogin, readCredential, WrongShape } from "./credential-shape.ts";

const URL_TEXT = "postgres://ann:s3cret@db.example:6543/shop";
const PEM = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n";
const login = (kind: ConnectionKind, text: string) => {
  const credential = readCredential(kind, text);
  if (credential.kind !== "database") throw new Error("no database");
  return credential.login;
};
const LOGIN: DatabaseLogin = {
  ...{ host: "db.example", port: 6543, user: "ann", password: "s3cret", database: "shop" },
  ...{ caPem: null, channelBinding: "disable" },
};

test("each kind has its forms", () => {
  expect(login("postgres", URL_TEXT)).toEqual(LOGIN);
  expect(login("neon", URL_TEXT)).toEqual(LOGIN);
  const withCa = { ...LOGIN, caPem: PEM };
  expect(login("postgres", JSON.stringify({ postgres_url: URL_TEXT, ca_cert: PEM }))).toEqual(withCa);
  expect(login("neon", JSON.stringify({ postgres_url: URL_TEXT, api_key: "k", ca_cert: PEM }))).toEqual(withCa);
  const supabase = { project_url: "https://p.supabase.co", service_key: "k", postgres_url: URL_TEXT };
  expect(login("supabase", JSON.stringify(supabase))).toEqual(LOGIN);
  expect(readCredential("wandb", "0123456789abcdef")).toEqual({ kind: "wandb", apiKey: "0123456789abcdef" });
});

test("the port, the database and the parameters have their defaults and values", () => {
  expect(login("postgres", "postgresql://ann:s3cret@DB.Example")).toEqual({ ...LOGIN, port: 5432, database: "ann" });
  for (const mode of ["require", "verify-ca", "verify-full"])
    expect(login("postgres", `${URL_TEXT}?sslmode=${mode}`)).toEqual(LOGIN);
  expect(login("postgres", `${URL_TEXT}?channel_binding=require&sslmode=require`).channelBinding).toBe("require");
  expect(login("postgres", `${URL_TEXT}?channel_binding=disable`).channelBinding).toBe("disable");
  expect(login("postgres", "postgres://ann:s3cret@[2606:4700::1]/shop").host).toBe("2606:4700::1");
});

test.for<[string, ConnectionKind, string]>([
  ["no URL", "postgres", "s3cret"],
  ["another scheme", "postgres", URL_TEXT.replace("postgres:", "https:")],
  ["a line break at the end", "postgres", `${URL_TEXT}\n`],
  ["no password", "postgres", "postgres://ann@db.example/s3cret"],
  ["no user", "postgres", "postgres://:s3cret@db.example/shop"],
  ["no host", "postgres", "postgres://ann:s3cret@/shop"],
  ["a socket's folder for a host", "postgres", "postgres://ann:s3cret@%2Fvar%2Frun/shop"],
  ["two hosts", "postgres", "postgres://ann:s3cret@one.example,two.example/shop"],
  ["a database with a path", "postgres", "postgres://ann:s3cret@db.example/a/b"],
  ["a broken escape", "postgres", "postgres://ann:s3cret%zz@db.example/shop"],
  ["NUL in the password", "postgres", "postgres://ann:s3cret%00@db.example/shop"],
  ["a fragment", "postgres", `${URL_TEXT}#s3cret`],
  ["TLS switched off", "postgres", `${URL_TEXT}?sslmode=disable`],
  ["TLS as it comes", "postgres", `${URL_TEXT}?sslmode=prefer`],
  ["a file of this machine", "postgres", `${URL_TEXT}?sslrootcert=/etc/passwd`],
  ["options for the server", "postgres", `${URL_TEXT}?options=-c%20s3cret`],
  ["another host in the query", "postgres", `${URL_TEXT}?host=127.0.0.1`],
  ["another channel binding", "postgres", `${URL_TEXT}?channel_binding=s3cret`],
  ["sslmode twice", "postgres", `${URL_TEXT}?sslmode=require&sslmode=require`],
  ["JSON cut short", "postgres", '{"postgres_url":"s3cret'],
  ["a list", "supabase", '["s3cret"]'],
  ["a bare URL", "supabase", URL_TEXT],
  ["no key of the service", "supabase", JSON.stringify({ project_url: "https://p.co", postgres_url: URL_TEXT })],
  [
    "an address without TLS",
    "supabase",
    JSON.stringify({ project_url: "http://p.co", service_key: "s3cret", postgres_url: URL_TEXT }),
  ],
  ["a member of another kind", "postgres", JSON.stringify({ postgres_url: URL_TEXT, api_key: "s3cret" })],
  ["a member that is no text", "neon", JSON.stringify({ postgres_url: URL_TEXT, api_key: 7 })],
  [
    "a private key for a certificate",
    "neon",
    JSON.stringify({ postgres_url: URL_TEXT, ca_cert: "-----BEGIN PRIVATE KEY-----\ns3cret" }),
  ],
  ["text beside a certificate", "neon", JSON.stringify({ postgres_url: URL_TEXT, ca_cert: `s3cret${PEM}` })],
  ["JSON", "wandb", '{"key": "s3cret"}'],
  ["a line break", "wandb", "s3crets3cret\n"],
  ["next to nothing", "wandb", "s3cret"],
])("%s is refused, and the refusal repeats nothing of it", ([, kind, text]) => {
  let error: unknown;
  try {
    readCredential(kind, text);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(WrongShape);
  expect((error as Error).message).not.toContain("s3cret");
});

test("any user, password and database that are percent-encoded arrive as they were", () => {
  const part = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 15 })
    .filter((t) => !t.includes("\0") && !t.includes("/"));
  fc.assert(
    fc.property(part, part, part, fc.integer({ min: 1, max: 65_535 }), (user, password, database, port) => {
      fc.pre(Buffer.byteLength(database) <= 63);
      const [u, p, d] = [user, password, database].map(encodeURIComponent);
      expect(login("postgres", `postgres://${u}:${p}@db.example:${port}/${d}`)).toMatchObject({
        user,
        password,
        database,
        port,
      });
    }),
  );
});

test("no text at all makes anything but a credential or a plain refusal", () => {
  const kinds = fc.constantFrom<ConnectionKind>("postgres", "neon", "supabase", "wandb");
  fc.assert(
    fc.property(kinds, fc.oneof(fc.string({ unit: "binary" }), fc.json(), fc.webUrl()), (kind, text) => {
      try {
        readCredential(kind, text);
      } catch (error) {
        expect(error).toBeInstanceOf(WrongShape);
      }
    }),
  );
});
