import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate, migrations, onlyExpands } from "../../infra/db/migrate.ts";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { emptyDatabase } from "../support/database.ts";
import { query } from "../support/embedded-postgres.ts";
import { Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { buildCommit, type MigrationHashes, previousRelease } from "../support/previous-release.ts";
import { script, settles, submit } from "../support/workloads.ts";

const released = JSON.parse(
  readFileSync(projectFile("tests", "ground", "released-migrations.json"), "utf8"),
) as MigrationHashes;
const found = previousRelease(migrations(), released);
const missing = "missing" in found ? found.missing : null;
const added = "missing" in found ? [] : migrations().filter(({ name }) => found.added.includes(name));
const contracting = added.filter((migration) => !onlyExpands(migration));

/** What people do all day: all of it touches tables that later migrations may have changed. */
async function usesEverything(client: PlatformClient, word: string): Promise<void> {
  const octets = { "content-type": "application/octet-stream" };
  const asset = await client.rest("uploadAsset", { query: { name: "word.txt" }, body: word, headers: octets });
  await client.rest("putSecret", { body: { name: `SECRET_${word}`, value: "a value" } });
  const command = 'cat "$NODUS_INPUT_word"/*; mkdir outputs; echo done > outputs/out.txt';
  const id = await submit(client, script(command, { inputs: [{ name: "word", assetId: asset.body.id }] }));
  expect((await settles(client, id)).status).toBe("completed");
  expect((await client.rest("getWorkloadLogs", { path: { id } })).body).toBe(word);
  const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id } })).body;
  expect(outputs).toHaveLength(1);
}

/**
 * Processes of two releases serve one database while the older ones are replaced: the newer release migrates first, and
 * the older ones go on, or even start again, on the tables as they are then.
 */
describe.skipIf(missing)(`the previous release${missing ? ` cannot be built: ${missing}` : ""}`, () => {
  let build: ReturnType<typeof buildCommit>;
  let database: Awaited<ReturnType<typeof emptyDatabase>>;
  let platform: Platform;

  beforeAll(async () => {
    build = buildCommit((found as { commit: string }).commit);
    database = await emptyDatabase();
    platform = await Platform.start(
      { DATABASE_URL: database.url, NODUS_CPU_FALLBACK: "1" },
      { commandLine: async () => build.commandLine },
    );
  }, 180_000);

  afterAll(async () => {
    await platform?.dispose();
    await database?.close();
    build?.remove();
  }, 60_000);

  test("works on while the database is migrated under it, and starts again afterwards", {
    timeout: 120_000,
  }, async () => {
    await usesEverything(platform.admin, "before");
    const applied = await migrate(database.url);
    expect(applied).toEqual(added.map(({ name }) => name));
    await usesEverything(platform.admin, "during");
    await platform.stop();
    if (contracting.length > 0) return; // it must not start again, which a test of migrations shows
    await platform.start();
    await usesEverything(platform.admin, "after");
    const needed = migrations().filter((migration) => !onlyExpands(migration));
    expect(await query(database.url, "select name from infra.migration order by name")).toEqual(
      needed.map(({ name }) => ({ name })),
    );
  });
});
