import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../infra/db/database.ts";
import { databaseOf } from "../../infra/graphql/context.ts";
import { Sleepers, type Wakeups } from "../../infra/live/wakeups.ts";
import { teamKey } from "../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { sentStatements } from "../../tests/support/sent-statements.ts";
import { followAccountEvents } from "./account-event/account-event-stream.ts";
import { followAsset } from "./asset/asset-stream.ts";
import type { DataContext } from "./data-context.ts";
import { dataEntities } from "./entities.ts";
import { dataTopics } from "./topics.ts";

const TEAMS = Array.from({ length: 20 }, (_, n) => `team_${n}`);
const assetOf = (team: string) => `asset_of_${team}`;
const sleepers = new Sleepers((error) => {
  throw error;
});
const wakeups: Pick<Wakeups, "on" | "healthy"> = { on: (topic, wake) => sleepers.on(topic, wake), healthy: true };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase(dataEntities);
  await database.db.sql("insert into data.account_stream (tenant_id, last_seq) select unnest($1::text[]), 7", [TEAMS]);
  await database.db.sql(
    `insert into data.asset (id, tenant_id, kind, name, state, stored_bytes, imported_bytes, created_at, change_seq)
     select * from unnest($1::text[], $2::text[]), (values ('url', '', 'importing', 0, 0, now(), 3)) of`,
    [TEAMS.map(assetOf), TEAMS],
  );
}, 60_000);
afterAll(() => database?.close());

/** A request's stream of its team, which has seen all there is. */
type Open = (db: Database, team: string) => AsyncIterable<unknown> | Promise<AsyncIterable<unknown>>;

test.each<[string, Open, (team: string) => string]>([
  [
    "account events",
    (db, tenantId) => followAccountEvents({ db, data: { wakeups } as DataContext["data"] }, { tenantId, after: 7 }),
    dataTopics.accountEvents,
  ],
  [
    "an asset",
    (db, tenantId) => followAsset({ db, wakeups }, { tenantId, assetId: assetOf(tenantId), after: 3 }),
    (team) => dataTopics.asset(assetOf(team)),
  ],
])(
  "two hundred silent streams of %s, of twenty teams, look by one statement",
  async (_what, open, topic) => {
    const sent = sentStatements();
    const streams = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const team = TEAMS[n % TEAMS.length]!;
        return (await open(databaseOf(database.db, teamKey(team)), team))[Symbol.asyncIterator]();
      }),
    );
    const waiting = streams.map((stream) => stream.next());
    const opening = await sent.settled();
    for (const team of TEAMS) sleepers.wake(topic(team));
    expect((await sent.settled()) - opening).toBe(1);
    expect(sent.texts.at(-1)).toMatch(/where .*tenant_id/);
    sent.stop();
    await Promise.all(streams.map((stream) => stream.return!()));
    expect((await Promise.all(waiting)).every(({ done }) => done)).toBe(true);
  },
  30_000,
);
