import type { BytesRow } from "../row.ts";
import { attachment } from "./content-disposition.ts";

/** An output's bytes with the hash that a client verifies them by. */
export const downloadOutput: BytesRow = {
  kind: "bytes",
  serve: async ({ caller, wire, headOnly, reply, ports }) => {
    const stageId = (wire.query.stage as string | undefined) ?? null;
    const output = await ports.openOutput({ ...caller, workloadId: wire.path.id!, name: wire.path.name!, stageId });
    reply.headers({
      "Content-Type": "application/octet-stream",
      "Content-Length": output.byteCount,
      "Content-Disposition": attachment(output.fileName),
      "X-Nodus-SHA256": output.sha256,
      // A page among the results must not run as one of ours.
      "X-Content-Type-Options": "nosniff",
    });
    return headOnly ? reply.send() : reply.send(await output.open());
  },
};
