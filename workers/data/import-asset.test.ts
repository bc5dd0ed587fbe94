import { afterAll, beforeAll, expect, test } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { JobContext } from "../../infra/queue/implement-job.ts";
import { AccountEvent } from "../../subgraphs/data/account-event/account-event.entity.ts";
import { AssetImport, AssetUpload } from "../../subgraphs/data/asset/asset.entity.ts";
import { settleAbandonedImports } from "../../subgraphs/data/asset/import/import.commands.ts";
import { type ImportFixture, importFixture } from "../../tests/support/import-fixture.ts";
import {
  type JobTrial,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { answer } from "../../tests/support/source-server.ts";
import { until } from "../../tests/support/until.ts";
import type { ImportDeps } from "./fetch-import.ts";
import { importAssetJob, importsReconciler } from "./import-asset.ts";
import { RunningImports } from "./running-imports.ts";

/** For a process that is not about to stop. */
const staying = new AbortController().signal;

let f: ImportFixture;
beforeAll(async () => {
  f = await importFixture();
}, 60_000);
afterAll(() => f?.close());

const reconcile = () => importsReconciler(f.deps()).run(new AbortController().signal, null);
const outbox = (assetId: string) =>
  f.db.sql("select 1 from infra.outbox where job = 'data.importAsset' and payload->>'assetId' = $1", [assetId]);

interface ImportWorld {
  db: ImportFixture["db"];
  clock: ImportFixture["clock"];
  ports: { objects: ImportFixture["objects"]; fetch: ImportDeps["fetch"] };
  actor: Actor;
  assetId: string;
}

function trial(): JobTrial<ImportWorld> {
  const body = ({ db, clock, ports, assetId }: ImportWorld, context: Partial<JobContext> = {}) =>
    importAssetJob(f.deps({ ...ports, db, clock }), f.box, staying).body(
      { assetId },
      jobContext({ db, clock }, context),
    );
  return {
    setup: async () => {
      const actor = f.team();
      const { asset } = await f.admit(actor, { kind: "huggingface", repo: "team/set" });
      const ports = { objects: f.objects, fetch: f.deps().fetch };
      return { db: f.db, clock: f.clock, ports, actor, assetId: asset.id };
    },
    run: (w) => body(w),
    // The lease of the process that died runs out; then the import is found and queued again.
    reconcile: async (w) => {
      await f.clock.advance(LIMITS.assetImportLeaseMs + 1_000);
      await reconcile();
      await body(w);
    },
    assert: async ({ actor, assetId }) => {
      const asset = await f.get(actor, assetId);
      expect(asset).toMatchObject({ state: "ready", format: "tar" });
      expect(await f.objects.has(asset.sha256!)).toBe(true);
      expect(await f.use(actor)).toEqual({ storedBytes: asset.storedBytes, stagedBytes: 0 });
      expect(await f.db.rows(AssetImport, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
      expect(await f.db.rows(AssetUpload, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
      const events = await f.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId]);
      expect(events.map((e) => e.type)).toEqual(["asset.importing", "asset.ready"]);
    },
    teardown: async () => {},
  };
}

test("an import that is run twice, in a row or at once, makes one asset", { timeout: 60_000 }, async () => {
  await survivesBeingRunTwice(trial());
});

test("an import whose process dies at any step is taken up by another", { timeout: 120_000 }, async () => {
  const steps = await survivesDyingAtEveryStep(trial());
  expect(steps).toEqual(expect.arrayContaining(["fetch.get, answered", "objects.put, answered"]));
});

test("a process that stops lets an import go, and another does it at once", async () => {
  const actor = f.team();
  const { asset } = await f.admit(actor, { kind: "url", url: silent("/held") });
  const stopping = new AbortController();
  const running = f.run(asset.id, {}, { signal: stopping.signal });
  await until("the source is asked", () => f.servers.web.seen.some((s) => s.path === "/held"));
  stopping.abort(new Error("going down"));
  await running;
  const leaving = importAssetJob(f.deps(), f.box, stopping.signal);
  expect(await leaving.body({ assetId: asset.id }, jobContext(f))).toMatchObject({ outcome: "retry" });
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "importing" });
  expect((await outbox(asset.id)).length).toBe(2);
  f.servers.web.routes.set("/held", answer("now"));
  await f.run(asset.id);
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "ready", storedBytes: 3 });
});

test("an import with a credential ends with its process: at once when it stops, by its lease when it is killed", async () => {
  const actor = f.team();
  const { github } = f.servers;
  github.routes.set("/repos/team/held/commits/main", () => {});
  const ask = { kind: "github" as const, repo: "team/held", token: "t0ken" };
  const [stopped, killed] = [await f.admit(actor, ask), await f.admit(actor, ask)];
  expect(await outbox(stopped.asset.id)).toEqual([]);
  const running = new RunningImports(f.deps());
  running.start(stopped.claim!, "t0ken");
  await until("the source is asked", () => github.seen.some((s) => s.path.includes("/held/")));
  await running.close();
  const interrupted = { state: "failed", error: "import_interrupted" };
  expect(await f.get(actor, stopped.asset.id)).toMatchObject(interrupted);
  await reconcile();
  expect(await f.get(actor, killed.asset.id)).toMatchObject({ state: "importing" });
  await f.run(killed.asset.id); // a job for it can't be there, and would not have the credential
  expect(await f.get(actor, killed.asset.id)).toMatchObject({ state: "importing" });
  await f.clock.advance(LIMITS.assetImportLeaseMs + 1_000);
  await reconcile();
  expect(await f.get(actor, killed.asset.id)).toMatchObject(interrupted);
});

test("an import that nobody did within ten minutes has failed", async () => {
  const actor = f.team();
  const { asset } = await f.admit(actor, { kind: "url", url: silent("/never") });
  await f.clock.advance(600_001);
  await f.run(asset.id);
  await reconcile();
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "failed", error: "source_timeout" });
});

test("a process that comes back late changes nothing of what another has done", async () => {
  const actor = f.team();
  const { web } = f.servers;
  const held = Promise.withResolvers<void>();
  web.routes.set("/late", (_, response) => {
    response.writeHead(200);
    response.write("old ");
    void held.promise.then(() => response.end("bytes"));
  });
  const { asset } = await f.admit(actor, { kind: "url", url: `${web.origin}/late` });
  // Its reports do not get through, so its lease runs out while it goes on.
  const unheard = new Proxy(f.clock, {
    get: (target, key) => {
      if (key === "sleep")
        return (_: number, signal: AbortSignal) => new Promise((r) => signal.addEventListener("abort", r));
      const member = Reflect.get(target, key, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  const late = f.run(asset.id, {}, { clock: unheard });
  await until("the source is asked", () => web.seen.some((s) => s.path === "/late"));
  await f.clock.advance(LIMITS.assetImportLeaseMs + 1_000);
  web.routes.set("/late", answer("new"));
  await f.run(asset.id);
  const done = await f.get(actor, asset.id);
  expect(done).toMatchObject({ state: "ready", storedBytes: 3 });
  held.resolve();
  await late;
  expect(await f.get(actor, asset.id)).toEqual(done);
  expect(await f.use(actor)).toEqual({ storedBytes: 3, stagedBytes: 0 });
});

/** An address that takes a request and never answers. */
function silent(path: string): string {
  f.servers.web.routes.set(path, () => {});
  return `${f.servers.web.origin}${path}`;
}

test("imports of a team whose rows somebody holds keep no other team's from being settled", async () => {
  const [mine, theirs] = [f.team(), f.team()];
  const abandoned = (actor: Actor) => f.admit(actor, { kind: "huggingface", repo: "team/set", token: "hf_secret" });
  const held = [await abandoned(mine), await abandoned(mine)];
  const other = await abandoned(theirs);
  await f.clock.advance(LIMITS.assetImportLeaseMs + 1_000);
  const [holds, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holder = f.db.command(async (tx) => {
    await tx.sql("select 1 from data.asset where tenant_id = $1 for update", [mine.tenantId]);
    holds.resolve();
    await letGo.promise;
  });
  await holds.promise;
  await expect(settleAbandonedImports(f.db, f.clock.now(), 2)).rejects.toMatchObject({ name: "StepsHeld", steps: 1 });
  expect(await f.get(theirs, other.asset.id)).toMatchObject({ state: "failed", error: "import_interrupted" });
  letGo.resolve();
  await holder;
  const states = () => Promise.all(held.map(async ({ asset }) => (await f.get(mine, asset.id)).state));
  expect(await states()).toEqual(["importing", "importing"]);
  await until("the team's own are settled", async () => {
    await reconcile().catch((error: Error) => expect(error.name).toBe("StepsHeld"));
    return (await states()).every((state) => state === "failed");
  });
}, 30_000);
