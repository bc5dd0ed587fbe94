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

/** What of a migration the release before it would stumble over. */
async function contractions(sql: string): Promise<string[]> {
  const { stmts = [] } = (await parse(sql)) as { stmts?: { stmt: Statement }[] };
  return stmts.flatMap(({ stmt }) => {
    const [[kind, body]] = Object.entries(stmt) as [[string, Statement[string]]];
    if (["DropStmt", "RenameStmt", "TruncateStmt", "DeleteStmt"].includes(kind)) return [kind];
    return (body.cmds ?? []).map(({ AlterTableCmd }) => contraction(AlterTableCmd)).filter((found) => found !== null);
  });
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
