import { expect, onTestFinished, test } from "vitest";
import { allEntities } from "../roles/entities.ts";
import { grantCredit } from "../subgraphs/compute/account/account.commands.ts";
import { beginCommand } from "../tests/support/command-line.ts";
import { insertAccount, TENANT } from "../tests/support/compute-fixtures.ts";
import { testDatabase } from "../tests/support/database.ts";

test("books that do not balance are shown, and fail the command that shows them", { timeout: 120_000 }, async () => {
  const { db, url, close } = await testDatabase(allEntities);
  onTestFinished(close);
  await db.sql("insert into compute.team (id, name, created_at) values ($1, 'one', now())", [TENANT]);
  await insertAccount(db, new Date());
  await grantCredit(db, { teamId: TENANT, micros: 5_000_000n, note: "for a test" }, new Date());
  const shown = async () => (await beginCommand(["accounts", "show"], { DATABASE_URL: url })).ended;
  expect(await shown()).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^books +balanced$/m) });
  await db.sql("update compute.ledger_entry set credit_micros = credit_micros + 7 where credit_micros > 0");
  const { code, stdout, stderr } = await shown();
  expect([code, stderr]).toEqual([2, expect.stringContaining(`The books of the team ${TENANT} are out of balance`)]);
  expect(stdout).toMatch(/^books +OUT OF BALANCE by 7 micros$/m);
});
