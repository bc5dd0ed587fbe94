import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import type pg from "pg";
import { OutboxRow } from "../../infra/db/outbox.ts";
import type { Actor } from "../../infra/kernel/actor.ts";
import { type Clock, systemClock } from "../../infra/kernel/clock.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { Outcome } from "../../infra/queue/implement-job.ts";
import { Asset } from "../../subgraphs/data/asset/asset.entity.ts";
import { ASSET_LIMITS } from "../../subgraphs/data/asset/asset-limits.ts";
import { storageUse } from "../../subgraphs/data/asset/asset-space.ts";
import type { Connection } from "../../subgraphs/data/connection/connection.entity.ts";
import { dataEntities } from "../../subgraphs/data/entities.ts";
import { QueryExport } from "../../subgraphs/data/export/export.entity.ts";
import { type ExportFields, requestExport } from "../../subgraphs/data/export/request-export.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { abandonedExports } from "../../workers/data/abandoned-exports.ts";
import { type RunExportDeps, runExportJob } from "../../workers/data/run-export.ts";
import { newTeams } from "./actors.ts";
import { insertSealedConnection } from "./connections.ts";
import { testDatabase } from "./database.ts";
import { jobContext } from "./jobs.ts";
import { startTlsPostgres, type TlsPostgres } from "./tls-postgres.ts";

export type ExportFixture = Awaited<ReturnType<typeof exportFixture>>;

/** The platform's database and stores beside a customer's PostgreSQL, for tests of exports. */
export async function exportFixture({ clock = systemClock }: { clock?: Clock } = {}, shared?: TlsPostgres) {
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-export-"));
  const scratchDir = path.join(folder, "scratch");
  const objects = await openDiskStore(path.join(folder, "store"));
  const [database, postgres] = await Promise.all([
    testDatabase([...dataEntities, OutboxRow]),
    shared ?? startTlsPostgres(),
  ]);
  const { db } = database;
  const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
  const exceptions = new PrivateExceptions(["localhost", "127.0.0.0/8"]);
  const deps: RunExportDeps = { secretBox: box, exceptions, objects, limits: ASSET_LIMITS, scratchDir };

  const one = async <T>(row: Promise<T | null>): Promise<T> => {
    const found = await row;
    if (!found) throw new Error("the row is not there");
    return found;
  };
  const assetOf = (id: string) => one(db.row(Asset, "where t.id = $1", [id]));
  const exportOf = (assetId: string) => one(db.row(QueryExport, "where t.asset_id = $1", [assetId]));

  const fixture = {
    ...{ db, clock, postgres, objects, deps, scratchDir, folder, assetOf, exportOf },
    /** Somebody of a new team. */
    actor: newTeams(),
    /** A connection of the team to the customer's database, by what its row and its secret's row say. */
    connection(
      { tenantId }: Actor,
      fields: { secret?: string } & Partial<Pick<Connection, "scope" | "kind" | "branch" | "region">> = {},
    ) {
      const { secret: credential = postgres.secret(), scope = "read", ...more } = fields;
      return insertSealedConnection(db, box, clock.now(), { tenantId, credential, scope, ...more });
    },
    request(actor: Actor, fields: ExportFields, limits = ASSET_LIMITS) {
      return requestExport({ db, limits }, actor, fields, clock.now());
    },
    async run(assetId: string, more: Partial<RunExportDeps> = {}, context = {}): Promise<Outcome> {
      const { id } = await exportOf(assetId);
      const world = { db, clock: clock as never };
      return runExportJob({ ...deps, ...more }).body({ exportId: id }, jobContext(world, context));
    },
    /** Admits an export, runs it and answers with its asset. */
    async exported(actor: Actor, fields: ExportFields, more: Partial<RunExportDeps> = {}): Promise<Asset> {
      const { asset } = await fixture.request(actor, fields);
      await fixture.run(asset.id, more);
      return assetOf(asset.id);
    },
    async bytesOf({ sha256 }: Asset): Promise<Buffer> {
      const object = await objects.open(sha256!);
      return buffer(object!.stream);
    },
    reconcile: () => abandonedExports({ db, clock, objects, scratchDir }).run(new AbortController().signal, null),
    /** Events of the team's stream, oldest first. */
    async events({ tenantId }: Actor): Promise<{ type: string; payload: Record<string, unknown> }[]> {
      return db.sql("select type, payload from data.account_event where tenant_id = $1 order by seq", [tenantId]);
    },
    storage: ({ tenantId }: Actor) => storageUse(db, tenantId, clock.now()),
    /** What exports have on their way on this machine. */
    scratch: () => readdir(scratchDir).catch(() => [] as string[]),
    customer: <T>(work: (client: pg.Client) => Promise<T>) => postgres.admin(work),
    async close() {
      await Promise.all([database.close(), shared ? null : postgres.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
  return fixture;
}
