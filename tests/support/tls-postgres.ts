import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { type Account, postgresAccount } from "../../infra/db/embedded/account.ts";
import { findBinaries } from "../../infra/db/embedded/binaries.ts";
import { createCluster, DATABASE_USER, readPassword } from "../../infra/db/embedded/cluster.ts";
import { clusterOf, postgresFolder, reachableBinaries } from "../../infra/db/embedded/place.ts";
import { launch, shutDown } from "../../infra/db/embedded/postmaster.ts";
import { type Authority, type Issued, testAuthority } from "./authority.ts";

/** The role, its password and its database that a test's customer has there. */
const CUSTOMER = { user: "customer", password: "p@ss/w:rd?é", database: "shop" } as const;

/** A customer's PostgreSQL: reached by TLS alone, with passwords that never cross the wire and an authority of its own. */
export interface TlsPostgres {
  readonly port: number;
  /** The certificate authority that signed the server's certificate. */
  readonly caPem: string;
  readonly authority: Authority;
  /** The customer's connection string, the address `localhost` by default; `query` is appended as it is. */
  url(change?: Partial<{ host: string; user: string; password: string; database: string; query: string }>): string;
  /** What a secret of a database connection holds, with the authority's certificate. */
  secret(change?: Parameters<TlsPostgres["url"]>[0]): string;
  /** Runs statements as the superuser, in the customer's database. */
  admin<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /** Serves another certificate from now on. */
  useCertificate(issued: Issued): Promise<void>;
  close(): Promise<void>;
}

/** Starts one; takes a second or two. `customer` owns the schema `public` of its database. */
export async function startTlsPostgres(): Promise<TlsPostgres> {
  // Under this name the next test run removes what a killed one left, server and all.
  const dataDir = mkdtempSync(path.join(tmpdir(), `nodus-tests-${process.pid}-tls-`));
  chmodSync(dataDir, 0o711);
  const folder = postgresFolder(dataDir);
  const account = postgresAccount(clusterOf(folder));
  const binaries = reachableBinaries(findBinaries(), account);
  const authority = await testAuthority();
  await createCluster(folder, binaries, account, false);
  put(folder, account, "pg_hba.conf", HBA);
  put(folder, account, "postgresql.auto.conf", TLS_SETTINGS);
  const serve = ({ certPem, keyPem }: Issued) => {
    put(folder, account, "server.crt", certPem);
    put(folder, account, "server.key", keyPem);
  };
  serve(await authority.issue(["localhost", "127.0.0.1"]));
  const server = await launch({ folder, binaries, account, port: null, durable: false, timeoutMs: 30_000 });

  const admin = (database: string) => asAdmin(server.port, readPassword(folder), database);
  await admin("postgres")(async (client) => {
    await client.query(`create role ${CUSTOMER.user} login password ${client.escapeLiteral(CUSTOMER.password)}`);
    await client.query(`create database ${CUSTOMER.database} owner ${CUSTOMER.user}`);
  });
  const url: TlsPostgres["url"] = (change = {}) => {
    const { host = "localhost", user, password, database, query = "" } = { ...CUSTOMER, ...change };
    const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
    return `postgres://${login}@${host}:${server.port}/${database}${query}`;
  };
  return {
    port: server.port,
    caPem: authority.caPem,
    authority,
    url,
    secret: (change) => JSON.stringify({ postgres_url: url(change), ca_cert: authority.caPem }),
    admin: admin(CUSTOMER.database),
    useCertificate: async (issued) => {
      serve(issued);
      await admin("postgres")((client) => client.query("select pg_reload_conf()"));
    },
    close: async () => {
      await shutDown(server, 10_000);
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The superuser comes without TLS, as the platform's own starter does; everybody else by TLS only. The role `unbound` may have an old password. */
const HBA = `local all all scram-sha-256
host all ${DATABASE_USER} 127.0.0.1/32 scram-sha-256
hostssl all unbound all md5
hostssl all all all scram-sha-256
`;

const TLS_SETTINGS = `ssl = on
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
ssl_min_protocol_version = 'TLSv1.2'
`;

/** Writes a file of the cluster that only the server's account reads. */
function put(folder: string, account: Account | null, name: string, text: string): void {
  const file = path.join(clusterOf(folder), name);
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600);
  if (account) chownSync(file, account.uid, account.gid);
}

function asAdmin(port: number, password: string, database: string) {
  return async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ host: "127.0.0.1", port, user: DATABASE_USER, password, database });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  };
}
