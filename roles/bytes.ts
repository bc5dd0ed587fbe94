import { Readable } from "node:stream";
import { type DocumentNode, parse } from "graphql";
import type { Gateway } from "../gateway/gateway.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import type { ObjectStore } from "../infra/objects/object-store.ts";
import type { BytesPorts, Caller, LogContent, OutputContent } from "../rest-compat/ports.ts";
import { logBytes } from "../subgraphs/compute/log/log-source.ts";
import { Placement } from "../subgraphs/compute/placement/placement.entity.ts";
import { WORKLOAD } from "../subgraphs/compute/workload/workload.refusals.ts";
import { ASSET_LIMITS } from "../subgraphs/data/asset/asset-limits.ts";
import { storeUpload } from "../subgraphs/data/asset/store-upload.ts";
import { importForCaller } from "./import-for-caller.ts";
import type { Parts } from "./parts.ts";
import type { ProcessPlan } from "./process-plan.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { whileKeyHolds } from "./while-key-holds.ts";

const OUTPUT = parse(`query outputForDownload($id: ID!, $name: String!, $stage: String) {
  workload(id: $id) { output(name: $name, stageId: $stage) { name sha256 bytes } }
}`);
const LOG = parse(`query logForDownload($id: ID!, $stage: String, $generation: Int) {
  workload(id: $id) { log(stageId: $stage, generation: $generation) { stageId generation source sha256 bytes truncated } }
}`);

/** Raw streams of the REST face: the graph says who may read what, the object store has the bytes. */
export function bytesPorts(parts: Parts, plan: ProcessPlan, gateway: Gateway): BytesPorts {
  const scratch = scratchFolder(parts.settings.dataDir, plan.alone);
  parts.drain.onClose("scratch folder", scratch.remove);
  return {
    uploadAsset: async ({ actor, name, content }) => {
      if (!actor.scopes.includes("data:write"))
        throw new Refused(COMMON.insufficient_scope, { extra: { required_scope: "data:write" } });
      const asset = await storeUpload(
        {
          db: parts.db.ofTeam(actor.tenantId),
          clock: parts.clock,
          objects: parts.objects.assets,
          limits: ASSET_LIMITS,
          scratchDir: scratch.path,
        },
        actor,
        // Kept open on an early refusal: the answer has to get out before the socket closes.
        { name, stream: whileKeyHolds(gateway.keys, actor, content.iterator({ destroyOnReturn: false })) },
      );
      return asset.id;
    },
    importAsset: (request) => importForCaller(gateway, request, parts.drain.began),
    openOutput: (request) => openOutput(parts.objects.results, gateway, request),
    openLog: (request) => openLog(parts, gateway, request),
  };
}

async function openOutput(
  results: ObjectStore,
  gateway: Gateway,
  request: Parameters<BytesPorts["openOutput"]>[0],
): Promise<OutputContent> {
  const variables = { id: request.workloadId, name: request.name, stage: request.stageId };
  const workload = await ask<{ output: { name: string; sha256: string; bytes: number } }>(
    gateway,
    request,
    OUTPUT,
    variables,
  );
  const { name, sha256, bytes } = workload.output;
  if (!(await results.has(sha256))) throw new Refused(WORKLOAD.output_gone, { field: "/name" });
  return { sha256, byteCount: bytes, fileName: name, open: () => streamOf(results, sha256) };
}

async function streamOf(results: ObjectStore, sha256: string): Promise<Readable> {
  const opened = await results.open(sha256);
  if (!opened) throw new Refused(WORKLOAD.output_gone, { field: "/name" });
  return opened.stream;
}

interface LogFacts {
  stageId: string;
  generation: number;
  source: "committed" | "live_snapshot";
  sha256: string | null;
  bytes: number;
  truncated: boolean;
}

async function openLog(
  parts: Parts,
  gateway: Gateway,
  request: Parameters<BytesPorts["openLog"]>[0],
): Promise<LogContent> {
  const variables = { id: request.workloadId, stage: request.stageId, generation: request.generation };
  const { log } = await ask<{ log: LogFacts | null }>(gateway, request, LOG, variables);
  if (!log) throw new Refused(WORKLOAD.log_not_found);
  const placement = await parts.db.row(
    Placement,
    "where t.tenant_id = $1 and t.workload_id = $2 and t.stage_id = $3 and t.generation = $4",
    [request.actor.tenantId, request.workloadId, log.stageId, log.generation],
  );
  if (!placement) throw new Refused(WORKLOAD.log_not_found);
  return {
    stageId: log.stageId,
    generation: log.generation,
    sha256: log.sha256,
    source: log.source === "committed" ? "committed" : "live-snapshot",
    truncated: log.truncated,
    byteCount: log.bytes,
    open: () => Readable.from(logBytes(parts.db, parts.objects.results, placement, log.bytes), { objectMode: false }),
  };
}

/** The workload's answer to a document; its first error, when there is one, goes on to the REST face. */
async function ask<T>(
  gateway: Gateway,
  caller: Caller,
  document: DocumentNode,
  variables: Record<string, unknown>,
): Promise<T> {
  const { actor, requestId, signal } = caller;
  const { data, errors } = await gateway.execute({ document, variables, actor, requestId, signal });
  if (errors?.[0]) throw errors[0];
  const workload = (data as { workload: T | null } | null)?.workload;
  if (!workload) throw new Refused(COMMON.not_found);
  return workload;
}
