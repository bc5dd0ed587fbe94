import type { ImportOutcome } from "../ports.ts";
import type { BytesRow } from "../row.ts";

const STATUS: Readonly<Record<ImportOutcome["outcome"], number>> = { reused: 200, ready: 201, admitted: 202 };

/** The caller waits for a source, which may take minutes; the record is read from the graph afterwards. */
export const importAsset: BytesRow = {
  kind: "bytes",
  document: true,
  serve: async ({ caller, readBody, ports, answerWith }) => {
    const { assetId, outcome } = await ports.importAsset({ ...caller, input: await readBody() });
    return answerWith({ id: assetId }, STATUS[outcome]);
  },
};
