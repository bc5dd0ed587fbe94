import { parse } from "graphql";
import type { Gateway } from "../gateway/gateway.ts";
import type { Result } from "../gateway/request.ts";
import { isStream } from "../gateway/stream.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import type { BytesPorts, ImportOutcome } from "../rest-compat/ports.ts";
import { ASSET } from "../subgraphs/data/asset/asset.refusals.ts";
import { IMPORT_KINDS } from "../subgraphs/data/asset/import/import.resolver.ts";
import { EXPORT_FORMATS } from "../subgraphs/data/export/export.entity.ts";

const IMPORT = parse(`mutation importForCaller($input: ImportAssetInput!) {
  importAsset(input: $input) { asset { id kind state } reused }
}`);
const UPDATES = parse(`subscription updatesForCaller($id: ID!) {
  assetUpdates(assetId: $id) { asset { state error errorMessage } complete }
}`);

type ImportRequest = Parameters<BytesPorts["importAsset"]>[0];

interface Update {
  asset: { state: string; error: string | null; errorMessage: string | null } | null;
  complete: boolean;
}

/** Admits an import through the graph and, unless it is a query's, waits until it is over, or the process is to stop. */
export async function importForCaller(
  gateway: Gateway,
  request: ImportRequest,
  stopping: AbortSignal,
): Promise<ImportOutcome> {
  const { actor, requestId, input } = request;
  // Without the caller's signal: what has arrived whole is admitted, whoever still waits for the answer.
  const { data, errors } = await gateway.execute({
    document: IMPORT,
    variables: { input: graphInput(input) },
    ...{ actor, requestId },
  });
  if (errors?.[0]) throw errors[0];
  const { asset, reused } = (data as { importAsset: { asset: { id: string; kind: string }; reused: boolean } })
    .importAsset;
  if (reused) return { assetId: asset.id, outcome: "reused" };
  if (asset.kind === "connection_query") return { assetId: asset.id, outcome: "admitted" };
  await untilOver(gateway, { ...request, signal: AbortSignal.any([request.signal, stopping]) }, asset.id);
  return { assetId: asset.id, outcome: "ready" };
}

/** Members of the body by their names in the graph. */
const GRAPH_NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["kind", "url", "repo", "ref", "files", "token", "sql", "format", "branch", "reuse"].map((name) => [name, name]),
  ),
  connection_id: "connectionId",
};

/** Checked here what the graph would refuse with the whole input in its words, credential included. */
function graphInput(input: Readonly<Record<string, unknown>>): Record<string, unknown> {
  for (const name of Object.keys(input))
    if (!Object.hasOwn(GRAPH_NAMES, name))
      throw new Refused(COMMON.unknown_field, { field: `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}` });
  requireOneOf(input, "kind", IMPORT_KINDS);
  if (input.format !== undefined) requireOneOf(input, "format", EXPORT_FORMATS);
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [GRAPH_NAMES[name]!, value]));
}

function requireOneOf(input: Readonly<Record<string, unknown>>, name: string, values: readonly string[]): void {
  if (values.includes(input[name] as string)) return;
  throw new Refused(ASSET.invalid_import, {
    field: `/${name}`,
    message: `${name} must be one of ${values.join(", ")}.`,
  });
}

async function untilOver(gateway: Gateway, { actor, requestId, signal }: ImportRequest, id: string): Promise<void> {
  const opened = await gateway.subscribe({ document: UPDATES, variables: { id }, actor, requestId, signal });
  if (!isStream(opened)) throw opened.errors?.[0] ?? new Refused(COMMON.unavailable);
  for await (const result of opened as AsyncIterable<Result>) {
    if (result.errors?.[0]) throw result.errors[0];
    const update = (result.data as { assetUpdates: Update } | null)?.assetUpdates;
    if (update?.complete) return requireReady(update);
  }
  // The stream ends early when the process stops or the caller's key does: the import goes on.
  throw new Refused(COMMON.unavailable, {
    message: `The import goes on, but this answer cannot wait for it.`,
    fix: `Read the asset ${id} until it is ready or failed.`,
    extra: { asset_id: id },
  });
}

function requireReady({ asset }: Update): void {
  if (asset?.state === "ready") return;
  const kind = ASSET[asset?.error as keyof typeof ASSET] ?? ASSET.asset_commit_failed;
  throw new Refused(kind, asset?.errorMessage ? { message: asset.errorMessage } : {});
}
