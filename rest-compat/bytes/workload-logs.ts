import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { LogContent } from "../ports.ts";
import type { BytesRow } from "../row.ts";

/** The saved log of one attempt as text: the committed one, or a snapshot of the live capture, told apart by headers. */
export const workloadLogs: BytesRow = {
  kind: "bytes",
  serve: async ({ caller, wire, headOnly, reply, ports }) => {
    const { stage = null, generation = null } = wire.query as { stage?: string; generation?: number };
    if (generation !== null && generation < 1)
      throw new Refused(COMMON.invalid_request, { field: "/generation", message: "generation must be at least 1." });
    const log = await ports.openLog({ ...caller, workloadId: wire.path.id!, stageId: stage, generation });
    reply.headers(headersOf(log));
    return headOnly ? reply.send() : reply.send(await log.open());
  },
};

function headersOf(log: LogContent): Record<string, string> {
  const snapshot = { "X-Nodus-Log-Source": "live-snapshot", "X-Nodus-Log-Truncated": String(log.truncated) };
  return {
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "X-Nodus-Stage-Id": log.stageId,
    "X-Nodus-Generation": String(log.generation),
    ...(log.byteCount === null ? {} : { "Content-Length": String(log.byteCount) }),
    ...(log.sha256 === null ? {} : { "X-Nodus-SHA256": log.sha256 }),
    ...(log.source === "live-snapshot" ? snapshot : {}),
  };
}
