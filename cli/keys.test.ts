import { expect, onTestFinished, test } from "vitest";
import { allEntities } from "../roles/entities.ts";
import { beginCommand } from "../tests/support/command-line.ts";
import { testDatabase } from "../tests/support/database.ts";

test("a list of keys that is not all of them says so", { timeout: 120_000 }, async () => {
  const { db, url, close } = await testDatabase(allEntities);
  onTestFinished(close);
  await db.sql("insert into compute.team (id, name, created_at) values ('team_1', 'one', now())");
  const insert = (from: number, to: number) =>
    db.sql(
      `insert into compute.api_key (id, team_id, name, hash, last_four, scopes, created_at)
       select 'key_' || n, 'team_1', 'k', n::text, 'abcd', '{}', now() + n * interval '1 s' from generate_series($1::int, $2::int) n`,
      [from, to],
    );
  const listed = async () => (await beginCommand(["keys", "ls"], { DATABASE_URL: url })).ended;
  await insert(1, 1_000);
  expect(await listed()).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("key_1 ") });
  await insert(1_001, 1_001);
  const { stdout, stderr } = await listed();
  expect(stderr).toBe("There are more; these are the newest 1000.\n");
  expect(stdout.trim().split("\n")).toHaveLength(1_001); // with the heading
  expect(stdout).not.toContain("key_1 ");
});
