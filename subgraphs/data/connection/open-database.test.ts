import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { testAuthority } from "../../../tests/support/authority.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { startTlsPostgres, type TlsPostgres } from "../../../tests/support/tls-postgres.ts";
import { sealContext } from "../secret/seal-context.ts";
import { SecretVersion } from "../secret/secret.entity.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { Connection, ConnectionUse } from "./connection.entity.ts";
import type { ConnectionFailure } from "./connection-failure.ts";
import { type DatabaseAsk, openDatabase } from "./open-database.ts";

let database: TestDatabase;
let postgres: TlsPostgres;
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const now = new Date("2026-03-01T12:00:00Z");
const OPEN = new PrivateExceptions(["localhost", "127.0.0.0/8"]);

beforeAll(async () => {
  postgres = await startTlsPostgres();
  database = await testDatabase([Connection, ConnectionUse, SecretVersion]);
});
afterAll(async () => {
  await Promise.all([database?.close(), postgres?.close()]);
});

/** A connection whose secret holds this text, as its row says; nothing was verified. */
async function connectionTo(text: string): Promise<DatabaseAsk> {
  const id = newId("connection", now);
  const pin = { secretId: newId("secret", now), version: 1 };
  const { masterKeyId, wrappedKey, ciphertext } = box.seal(Buffer.from(text), sealContext("team_1", pin.secretId, 1));
  await database.db.sql(
    `insert into data.secret_version (secret_id, version, tenant_id, master_key_id, wrapped_key, ciphertext, created_at)
     values ($1, 1, 'team_1', $2, $3, $4, $5)`,
    [pin.secretId, masterKeyId, wrappedKey, ciphertext, now],
  );
  await database.db.sql(
    `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, egress_hosts, live_mode,
       verified_at, created_at, created_by) values ($1, 'team_1', $1, 'postgres', $2, 1, 'read', '{}', false, $3, $3, 'key_1')`,
    [id, pin.secretId, now],
  );
  return { tenantId: "team_1", connectionId: id, pin, timeoutMs: 5_000, applicationName: "nodus test" };
}

const open = (ask: DatabaseAsk, exceptions = OPEN) =>
  openDatabase({ db: database.db, secretBox: box, exceptions, clock: systemClock }, ask);

/** The failure, after a look that no value of the login is in what it says. */
async function failure(ask: DatabaseAsk, exceptions = OPEN): Promise<ConnectionFailure["reason"]> {
  const error = (await open(ask, exceptions).then(
    () => null,
    (e: unknown) => e,
  )) as ConnectionFailure;
  expect(error).toMatchObject({ name: "ConnectionFailure" });
  const told = `${error.message} ${error.stack} ${JSON.stringify(error)}`;
  for (const value of ["customer", "p@ss", "p%40ss", "shop", String(postgres.port)]) expect(told).not.toContain(value);
  return error.reason;
}

test("a database is opened with the pinned credential, over TLS, under the given name", async () => {
  const client = await open(await connectionTo(postgres.secret()));
  try {
    const { rows } = await client.query(
      `select current_user as who, current_database() as database, current_setting('application_name') as name,
              (select ssl from pg_stat_ssl where pid = pg_backend_pid()) as tls`,
    );
    expect(rows).toEqual([{ who: "customer", database: "shop", name: "nodus test", tls: true }]);
  } finally {
    await client.end();
  }
});

test("an address in place of a name is verified too, and a login can be bound to the channel", async () => {
  const ask = await connectionTo(
    postgres.secret({ host: "127.0.0.1", query: "?sslmode=verify-full&channel_binding=require" }),
  );
  await (await open(ask)).end();
});

test("a login that must be bound to the channel is not made with a server that can't", async () => {
  await postgres.admin(async (client) => {
    await client.query("set password_encryption = 'md5'");
    await client.query("create role unbound login password 'unbound-password'");
  });
  const as = { user: "unbound", password: "unbound-password" };
  await (await open(await connectionTo(postgres.secret({ ...as, query: "?channel_binding=prefer" })))).end();
  const bound = await connectionTo(postgres.secret({ ...as, query: "?channel_binding=require" }));
  expect(await failure(bound)).toBe("credentials_rejected");
});

test("a certificate of an unknown authority is not trusted, whatever sslmode says", async () => {
  expect(await failure(await connectionTo(postgres.url({ query: "?sslmode=require" })))).toBe("tls_untrusted");
});

test("a certificate for another host is told apart", async () => {
  await postgres.useCertificate(await postgres.authority.issue(["elsewhere.example"]));
  try {
    expect(await failure(await connectionTo(postgres.secret()))).toBe("tls_host_mismatch");
  } finally {
    await postgres.useCertificate(await postgres.authority.issue(["localhost", "127.0.0.1"]));
  }
});

test("a wrong password, an unknown role and a missing database are told apart from the network", async () => {
  expect(await failure(await connectionTo(postgres.secret({ password: "wrong" })))).toBe("credentials_rejected");
  expect(await failure(await connectionTo(postgres.secret({ user: "nobody" })))).toBe("credentials_rejected");
  expect(await failure(await connectionTo(postgres.secret({ database: "missing" })))).toBe("database_refused");
});

test("a private address is refused by name and by number until the operator opens it", async () => {
  const closed = new PrivateExceptions([]);
  expect(await failure(await connectionTo(postgres.secret()), closed)).toBe("private_address");
  expect(await failure(await connectionTo(postgres.secret({ host: "127.0.0.1" })), closed)).toBe("private_address");
  expect(await failure(await connectionTo(postgres.secret({ host: "[::1]" })), closed)).toBe("private_address");
});

test("a host that is nowhere and a port that nobody listens on are unreachable", async () => {
  const { caPem } = await testAuthority();
  const at = (place: string) => JSON.stringify({ postgres_url: `postgres://u:password@${place}/d`, ca_cert: caPem });
  expect(await failure(await connectionTo(at("no-such-name.invalid")))).toBe("unreachable");
  expect(await failure(await connectionTo(at("127.0.0.1:1")))).toBe("unreachable");
});

test("a server without TLS is not spoken to", async () => {
  const told: string[] = [];
  const server = await listen((socket) =>
    socket.on("data", (data) => {
      told.push(data.toString("latin1"));
      socket.write("N");
    }),
  );
  expect(await failure(await connectionTo(`postgres://customer:p%40ss@127.0.0.1:${portOf(server)}/shop`))).toBe(
    "tls_untrusted",
  );
  expect(told.join("")).not.toMatch(/customer|shop/);
  server.close();
});

test("a server that says nothing is given up within the time limit", async () => {
  const server = await listen(() => {});
  const ask = await connectionTo(`postgres://customer:p%40ss@127.0.0.1:${portOf(server)}/shop`);
  expect(await failure({ ...ask, timeoutMs: 200 })).toBe("timeout");
  server.close();
});

test("a server that talks without end before the login is cut off long before the time is over", async () => {
  const { certPem, keyPem } = await postgres.authority.issue(["127.0.0.1"]);
  let sent = 0;
  const server = await listen((socket) =>
    socket.once("data", () => {
      socket.write("S");
      const tls = new TLSSocket(socket, { isServer: true, cert: certPem, key: keyPem });
      tls.on("error", () => {}); // the client leaves in the middle
      // An error message that says it is a gigabyte long.
      tls.once("data", () => {
        tls.write(Buffer.from([0x45, 0x40, 0, 0, 0]));
        const more = () => {
          sent += 65_536;
          if (!tls.destroyed) tls.write(Buffer.alloc(65_536), () => setImmediate(more));
        };
        more();
      });
    }),
  );
  const secret = {
    postgres_url: `postgres://customer:p%40ss@127.0.0.1:${portOf(server)}/shop`,
    ca_cert: postgres.caPem,
  };
  const ask = await connectionTo(JSON.stringify(secret));
  expect(await failure({ ...ask, timeoutMs: 60_000 })).toBe("database_refused");
  expect(sent).toBeLessThan(1024 * 1024);
  server.close();
});

test("a version that was destroyed, another team's and a foreign connection are inactive credentials", async () => {
  const ask = await connectionTo(postgres.secret());
  expect(await failure({ ...ask, pin: { ...ask.pin, version: 2 } })).toBe("credential_inactive");
  expect(await failure({ ...ask, tenantId: "team_2" })).toBe("credential_inactive");
  await database.db.sql("delete from data.secret_version where secret_id = $1", [ask.pin.secretId]);
  expect(await failure(ask)).toBe("credential_inactive");
});

async function listen(onSocket: Parameters<typeof createServer>[1] & object): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => {}); // the client leaves in the middle
    onSocket(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;
