import { expect, test } from "vitest";
import { sourceFiles } from "../support/sources.ts";

/**
 * Where the data domain runs commands without saying whose connections they use, as `file: function`, by the reason why
 * they need not. A command of a job or a reconciler that may wait for a team's rows says so with `forJob`: otherwise one
 * team whose rows somebody holds has the connections of all.
 */
const UNBOUNDED: Readonly<Record<string, readonly string[]>> = {
  "a caller's: the database that a request is given is its team's": [
    "subgraphs/data/asset/asset-upload.commands.ts: abandonUpload",
    "subgraphs/data/asset/asset-upload.commands.ts: beginUpload",
    "subgraphs/data/asset/asset-upload.commands.ts: claimObject",
    "subgraphs/data/asset/asset-upload.commands.ts: commitUpload",
    "subgraphs/data/asset/asset-upload.commands.ts: reportUpload",
    "subgraphs/data/asset/delete-asset.ts: beginDeletion",
    "subgraphs/data/asset/import/admit-import.ts: admitImport",
    "subgraphs/data/connection/connection.commands.ts: deleteConnection",
    "subgraphs/data/connection/connection.commands.ts: store",
    "subgraphs/data/connection/connection.commands.ts: verifyConnection",
    "subgraphs/data/delivery/delivery.commands.ts: redeliver",
    "subgraphs/data/export/request-export.ts: requestExport",
    "subgraphs/data/github-account/github-account.commands.ts: connectGithub",
    "subgraphs/data/github-account/github-account.commands.ts: disconnectGithub",
    "subgraphs/data/load/reload-output.ts: reloadOutput",
    "subgraphs/data/secret/secret.commands.ts: putSecret",
    "subgraphs/data/secret/secret.commands.ts: retireSecret",
    "subgraphs/data/webhook/webhook.commands.ts: deleteWebhook",
    "subgraphs/data/webhook/webhook.commands.ts: putWebhook",
  ],
  "a caller's, and a sweep's with the database of the asset's team": [
    "subgraphs/data/asset/delete-asset.ts: endDeletion",
  ],
  "of all teams: it takes up only what nobody holds, and waits for nothing": [
    "subgraphs/data/asset/collect-asset-bytes.ts: markGarbage",
    "subgraphs/data/connection/sweep-connections.ts: sweepConnections",
    "subgraphs/data/export/abandoned-exports.ts: queueAgain",
    "subgraphs/data/load/abandoned-loads.ts: queueAgain",
  ],
  "about bytes that belong to no team": ["subgraphs/data/asset/asset-object.ts: removeIfUnused"],
  "an operator's, who changes the master key": ["subgraphs/data/secret/rewrap-sealed.ts: rewrapBatch"],
};

interface Node {
  readonly type?: string;
  readonly id?: { name?: string } | null;
  readonly key?: { name?: string };
  readonly callee?: { property?: { name?: string } };
  readonly arguments?: readonly unknown[];
}

/** The functions in which `command` is called with its work alone, the outermost of each. */
function unboundedIn(node: unknown, within: string | null = null): string[] {
  if (node === null || typeof node !== "object") return [];
  if (Array.isArray(node)) return node.flatMap((child) => unboundedIn(child, within));
  const one = node as Node;
  const named = ["FunctionDeclaration", "VariableDeclarator", "MethodDefinition"].includes(one.type ?? "");
  const inside = within ?? (named ? (one.id?.name ?? one.key?.name ?? null) : null);
  const isCommand = one.type === "CallExpression" && one.callee?.property?.name === "command";
  const own = isCommand && one.arguments!.length < 2 ? [inside ?? "the file itself"] : [];
  return [...own, ...Object.values(node).flatMap((child) => unboundedIn(child, inside))];
}

test("a command of the data domain says whose connections it uses, or stands here with the reason", () => {
  const own = sourceFiles().filter(({ file, isTest }) => !isTest && /^(subgraphs|workers)\/data\//.test(file));
  const found = own.flatMap(({ file, program }) => unboundedIn(program).map((name) => `${file}: ${name}`));
  expect([...new Set(found)].toSorted()).toEqual(Object.values(UNBOUNDED).flat().toSorted());
}, 120_000);

test.each([
  ["function f() { return db.command(work); }", ["f"]],
  ["class C { m() { this.#db.command(async (tx) => {}); } }", ["m"]],
  ["const f = () => [1].map(() => db.command(work));", ["f"]],
  ["db.command(work);", ["the file itself"]],
  ["function f() { return db.command(work, forJob(teamId)); }", []],
])("%s", async (source, found) => {
  const { parseSync } = await import("oxc-parser");
  expect(unboundedIn(parseSync("source.ts", source).program)).toEqual(found);
});
