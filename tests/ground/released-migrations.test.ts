import { readFileSync } from "node:fs";
import { parse } from "libpg-query";
import { describe, expect, test } from "vitest";
import { migrations, onlyExpands } from "../../infra/db/migrate.ts";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { hashOf, type MigrationHashes } from "../support/previous-release.ts";

const released = JSON.parse(
  readFileSync(projectFile("tests", "ground", "released-migrations.json"), "utf8"),
) as MigrationHashes;

/** A statement as PostgreSQL's parser shows it. */
type Statement = Record<string, { cmds?: { AlterTableCmd: AlterCommand }[] } & Record<string, unknown>>;
interface AlterCommand {
  subtype: string;
  name?: string;
  def?: { ColumnDef?: { colname: string; constraints?: { Constraint: { contype: string } }[] } };
}

/** What of a migration the release before it would stumble over; an index that only makes reads fast is none of it. */
async function contractions(sql: string): Promise<string[]> {
  const plain = await plainIndexes();
  return (await statements(sql)).flatMap((stmt) => {
    const [[kind, body]] = Object.entries(stmt) as [[string, Statement[string]]];
    if (kind === "DropStmt" && body.removeType === "OBJECT_INDEX" && dropped(body).every((n) => plain.has(n)))
      return [];
    if (["DropStmt", "RenameStmt", "TruncateStmt", "DeleteStmt"].includes(kind)) return [kind];
    return (body.cmds ?? []).map(({ AlterTableCmd }) => contraction(AlterTableCmd)).filter((found) => found !== null);
  });
}

async function statements(sql: string): Promise<Statement[]> {
  const { stmts = [] } = (await parse(sql)) as { stmts?: { stmt: Statement }[] };
  return stmts.map(({ stmt }) => stmt);
}

/** Names of the indexes of all migrations that keep nothing unique, so that no statement needs them to be there. */
async function plainIndexes(): Promise<Set<string>> {
  const all = (await Promise.all(migrations().map(({ sql }) => statements(sql)))).flat();
  const made = all.flatMap(({ IndexStmt }) => (IndexStmt ? [IndexStmt] : []));
  return new Set(made.filter(({ unique }) => !unique).map(({ idxname }) => String(idxname)));
}

/** What a DROP names, without the schemas. */
function dropped({ objects }: Record<string, unknown>): string[] {
  return (objects as { List: { items: { String: { sval: string } }[] } }[]).map(
    ({ List }) => List.items.at(-1)!.String.sval,
  );
}

function contraction({ subtype, name, def }: AlterCommand): string | null {
  if (["AT_DropColumn", "AT_AlterColumnType", "AT_SetNotNull"].includes(subtype)) return `${subtype} ${name}`;
  if (subtype !== "AT_AddColumn") return null;
  const kinds = (def?.ColumnDef?.constraints ?? []).map(({ Constraint }) => Constraint.contype);
  const unfilled = kinds.includes("CONSTR_NOTNULL") && !kinds.includes("CONSTR_DEFAULT");
  return unfilled ? `AT_AddColumn ${def?.ColumnDef?.colname} not null without a default` : null;
}

test("a migration that was released is never edited, renamed or overtaken", () => {
  const names = Object.keys(released);
  const own = migrations();
  expect(own.slice(0, names.length).map((m) => m.name)).toEqual(names);
  for (const { name, sql } of own.slice(0, names.length)) expect([name, hashOf(sql)]).toEqual([name, released[name]]);
});

describe.each(migrations().filter(onlyExpands))("the migration $name", ({ sql }) => {
  test("takes nothing away from the release before it, or says in its first line that it contracts", async () => {
    expect(await contractions(sql)).toEqual([]);
  });
});

test.each([
  ["alter table a add column b text not null", "AT_AddColumn b not null without a default"],
  ["alter table a drop column b", "AT_DropColumn b"],
  ["alter table a alter column b type int", "AT_AlterColumnType b"],
  ["alter table a alter column b set not null", "AT_SetNotNull b"],
  ["alter table a rename column b to c", "RenameStmt"],
  ["drop table a", "DropStmt"],
  ["delete from a", "DeleteStmt"],
])("%j is found to take something away", async (sql, found) => {
  expect(await contractions(sql)).toEqual([found]);
});

test("an index that keeps something unique is missed when it goes, one that makes reads fast is not", async () => {
  expect(await contractions("drop index compute.stage_by_workload")).toEqual(["DropStmt"]);
  expect(await contractions("drop index compute.stage_fair")).toEqual([]);
  expect(await contractions("drop index compute.stage_fair, compute.stage_by_workload")).toEqual(["DropStmt"]);
  expect(await contractions("drop table compute.stage")).toEqual(["DropStmt"]);
});
