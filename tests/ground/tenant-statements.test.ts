import { describe, expect, test } from "vitest";
import { selectList, tableOf } from "../../infra/db/columns.ts";
import { allEntities } from "../../roles/entities.ts";
import { type SyntaxNode, sourceFiles, walk } from "../support/sources.ts";

/** The column that says whose a row is, by table; tables without one belong to the deployment. */
const OWNER = new Map(
  allEntities.flatMap((entity) => {
    const owner = /\bt\.(tenant_id|team_id) as/.exec(selectList(entity))?.[1];
    return owner ? [[tableOf(entity), owner] as const] : [];
  }),
);
const TABLE_OF = new Map(allEntities.map((entity) => [entity.name, tableOf(entity)]));

/**
 * Code that no caller's id reaches unchecked, by the reason why its statements need not say whose rows they are about.
 * What answers people (resolvers, reads, lists) is never here.
 */
const NEED_NOT_SAY: Readonly<Record<string, readonly string[]>> = {
  "offers and machines are the deployment's; the few of one team are left out where a stage is matched": [
    "subgraphs/compute/awaited-times.ts",
    "subgraphs/compute/offer/offer-health.commands.ts",
    "subgraphs/compute/offer/offer-market.ts",
    "subgraphs/compute/offer/recall-quarantines.ts",
    "subgraphs/compute/offer/sync-offers.commands.ts",
  ],
  "a reconciler or sweep works for all teams, and names rows only to itself": [
    "infra/db/sweep-idempotency.ts",
    "subgraphs/compute/output/expire-results.ts",
    "subgraphs/compute/output/run-results.port.ts",
    "subgraphs/compute/placement/forget-placements.ts",
    "subgraphs/data/asset/asset-object.ts",
    "subgraphs/data/asset/collect-asset-bytes.ts",
    "subgraphs/data/asset/delete-asset.ts",
    "subgraphs/data/asset/import/import.commands.ts",
    "subgraphs/data/connection/sweep-connections.ts",
    "subgraphs/data/delivery/sweep-deliveries.ts",
    "subgraphs/data/export/abandoned-exports.ts",
    "subgraphs/data/export/clean-export.ts",
    "subgraphs/data/load/abandoned-loads.ts",
    "subgraphs/data/load/forget-loads.ts",
    "subgraphs/data/secret/destroy-retired-secrets.ts",
    "workers/data/abandoned-loads.ts",
    "workers/reconcile/attempts.ts",
    "workers/reconcile/expired-leases.ts",
    "workers/reconcile/housekeeping.ts",
    "workers/reconcile/orphans.ts",
    "workers/reconcile/unfinished-business.ts",
    "workers/reconcile/waiting-stages.ts",
  ],
  "the row is found by a secret or a hash that only its owner has": [
    "infra/db/idempotency.ts",
    "subgraphs/compute/team/bootstrap.ts",
  ],
  "a job is told its row by the command that made it": [
    "subgraphs/data/asset/import/import-claim.ts",
    "subgraphs/data/delivery/attempt.commands.ts",
    "subgraphs/data/export/export-claim.ts",
    "subgraphs/data/load/final-figures.ts",
    "subgraphs/data/load/load-claim.ts",
    "workers/compute/close-workload.ts",
    "workers/compute/commit-log.ts",
    "workers/compute/launch-order.ts",
    "workers/compute/place-stage.ts",
    "workers/compute/release-attempt.ts",
    "workers/compute/supervise-boot.ts",
    "workers/compute/team-bounds.ts",
  ],
  "a host speaks for the order whose token or session it showed": [
    "intake/server.ts",
    "subgraphs/compute/lifecycle/end-generation.commands.ts",
    "subgraphs/compute/lifecycle/exchange-token.ts",
    "subgraphs/compute/lifecycle/funding.commands.ts",
    "subgraphs/compute/lifecycle/locked-order.ts",
    "subgraphs/compute/lifecycle/record-handlers.ts",
    "subgraphs/compute/lifecycle/record.commands.ts",
    "subgraphs/compute/lifecycle/renew-lease.ts",
    "subgraphs/compute/log/add-run-links.ts",
    "subgraphs/compute/log/log.commands.ts",
  ],
  "the caller has found the row under its team's id, or holds its lock": [
    "subgraphs/compute/ledger/ledger.commands.ts",
    "subgraphs/compute/lifecycle/deadline.commands.ts",
    "subgraphs/compute/lifecycle/finish.commands.ts",
    "subgraphs/compute/lifecycle/recovery.ts",
    "subgraphs/compute/lifecycle/settlement.commands.ts",
    "subgraphs/compute/placement/boot.commands.ts",
    "subgraphs/compute/placement/end-hopeless.commands.ts",
    "subgraphs/compute/placement/fair-batch.ts",
    "subgraphs/compute/placement/lock-attempt.ts",
    "subgraphs/compute/placement/release.commands.ts",
    "subgraphs/compute/placement/write-claims.ts",
    "subgraphs/compute/placement/write-waiting.ts",
    "subgraphs/compute/stage/stage.commands.ts",
    "subgraphs/compute/workload/workload.transitions.ts",
    "subgraphs/data/asset/asset-pins.ts",
    "subgraphs/data/connection/connection-uses.ts",
    "subgraphs/data/connection/find-connection.ts",
    "subgraphs/data/load/open-load.ts",
    "subgraphs/data/secret/secret-pins.ts",
  ],
};

/** A statement as far as the source tells it, and the tables that it is about. */
interface Statement {
  text: string;
  tables: readonly string[];
}

/** Owned tables of a statement that neither compares nor writes whose rows it is about; pieces are judged where they are put in. */
function ownerless({ text, tables }: Statement): string[] {
  if (!/^\s*(select|update|delete|insert|with|where)\b/i.test(text)) return [];
  const owned = tables.filter((table) => OWNER.has(table));
  return owned.some((table) => saysWhose(text, OWNER.get(table)!)) ? [] : owned;
}

function saysWhose(text: string, owner: string): boolean {
  if (/\binsert into\b/i.test(text)) return new RegExp(`\\b${owner}\\b`).test(text);
  return new RegExp(`\\b${owner}\\b\\s*(=|<|>|in\\b)|(=\\s*|\\()(\\w+\\.)?${owner}\\b`).test(text);
}

/** The statements of a program: SQL that names its tables, and what `rows` and `row` are asked for. */
function statementsOf(program: object): Statement[] {
  const constants = new Map<string, SyntaxNode>();
  const found: Statement[] = [];
  walk(program, (node) => {
    const { id, init } = node as { id?: SyntaxNode; init?: SyntaxNode };
    if (node.type === "VariableDeclarator" && id?.name && init) constants.set(id.name, init);
  });
  walk(program, (node) => {
    const name = node.callee?.property?.name;
    const [type, tail] = (node.arguments ?? []) as SyntaxNode[];
    if (node.type === "CallExpression" && (name === "rows" || name === "row") && type?.name && TABLE_OF.has(type.name))
      found.push({ text: textOf(tail, constants), tables: [TABLE_OF.get(type.name)!] });
    const text = node.type === "TemplateLiteral" || node.type === "Literal" ? textOf(node, constants) : "";
    const tables = [...text.matchAll(/\b(?:from|join|into|update) ([a-z]+\.[a-z_]+)/gi)].map((match) => match[1]!);
    if (tables.length > 0) found.push({ text, tables });
  });
  return found;
}

/** A text with what it is put together from, as far as the same file says it. */
function textOf(node: SyntaxNode | undefined, constants: ReadonlyMap<string, SyntaxNode>, depth = 0): string {
  if (!node || depth > 4) return "";
  const { value, quasis, expressions } = node as {
    value?: unknown;
    quasis?: { value: { raw: string } }[];
    expressions?: SyntaxNode[];
  };
  if (node.type === "Literal") return typeof value === "string" ? value : "";
  if (node.type === "Identifier") return textOf(constants.get(node.name!), constants, depth + 1);
  if (node.type !== "TemplateLiteral") return "";
  return quasis!.map((q, i) => q.value.raw + textOf(expressions![i], constants, depth + 1)).join("");
}

const LOOKED_THROUGH = /^(subgraphs|workers|intake|infra|cli)\/|^roles\/(?!simulation\/)/;
const ANSWERS_PEOPLE = /(resolver|reads|-list|-stream|create-[a-z-]+|-context)\.ts$/;

/** By file, the statements that do not say whose rows they are about. */
function found(): Map<string, string[]> {
  const byFile = new Map<string, string[]>();
  for (const { file, program, isTest } of sourceFiles()) {
    if (isTest || !LOOKED_THROUGH.test(file)) continue;
    const texts = statementsOf(program).flatMap((s) => (ownerless(s).length > 0 ? [s.text.trim()] : []));
    if (texts.length > 0) byFile.set(file, texts);
  }
  return byFile;
}
test("a statement says whose rows it is about, unless nobody's id reaches it unchecked", () => {
  const known = Object.values(NEED_NOT_SAY).flat();
  const silent = found();
  expect(Object.fromEntries([...silent].filter(([file]) => !known.includes(file)))).toEqual({});
  expect(known.filter((file) => !silent.has(file))).toEqual([]);
  expect(known.filter((file) => ANSWERS_PEOPLE.test(file))).toEqual([]);
}, 120_000); // it parses every source

describe("the rule itself", () => {
  const workload = (text: string) => ownerless({ text, tables: ["compute.workload"] });

  test.each([
    "select 1 from compute.workload where id = $1",
    "update compute.workload set name = $2 where id = $1",
    "delete from compute.workload where id = $1",
    "select tenant_id from compute.workload where id = $1",
    "insert into compute.workload (id) values ($1)",
    "where t.id = $1 for update",
  ])("sees %s", (text) => expect(workload(text)).toEqual(["compute.workload"]));

  test.each([
    "select 1 from compute.workload where tenant_id = $1 and id = $2",
    "where t.tenant_id = $1 order by t.id",
    "insert into compute.workload (id, tenant_id) values ($1, $2)",
    "select 1 from compute.workload w where (w.tenant_id, w.id) in (select * from unnest($1::text[], $2::text[]))",
    "select 1 from x join compute.workload w on x.team = w.tenant_id",
  ])("lets %s pass", (text) => expect(workload(text)).toEqual([]));

  test("minds no table that belongs to nobody", () => {
    expect(ownerless({ text: "select 1 from compute.supplier", tables: ["compute.supplier"] })).toEqual([]);
    expect([...OWNER.keys()]).toEqual(
      expect.arrayContaining([
        "compute.workload",
        "compute.api_key",
        "data.asset",
        "pools.pool",
        "sandboxes.workspace",
      ]),
    );
  });
});
