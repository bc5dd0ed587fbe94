import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ObjectStore, StoredObject } from "../../infra/objects/object-store.ts";
import { type ResultDeps, storeResult } from "../../subgraphs/compute/output/result-object.commands.ts";

/** Bytes of an output as intake has them when its host tells of it, in a store that forgets them: nobody reads them. */
export function storedResult(deps: Pick<ResultDeps, "db" | "clock">, text: string): Promise<StoredObject> {
  const bytes = Buffer.from(text);
  return storeResult({ ...deps, objects: FORGETFUL }, Readable.from([bytes]), { maxBytes: bytes.length });
}

const FORGETFUL: Pick<ObjectStore, "put"> = {
  put: async (source, { claim }) => {
    const bytes = await buffer(Readable.from(source));
    const stored = { sha256: createHash("sha256").update(bytes).digest("hex"), bytes: bytes.length };
    await claim?.(stored);
    return stored;
  },
};
