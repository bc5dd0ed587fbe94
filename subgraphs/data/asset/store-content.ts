import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Refused } from "../../../infra/kernel/refusal.ts";
import {
  type ObjectStore,
  ObjectTooLarge,
  type PutTerms,
  type StoredObject,
} from "../../../infra/objects/object-store.ts";
import type { ArchiveEntry, ArchiveKind } from "./archive/entry.ts";
import { checkedTar, normalisedTar } from "./archive/normalise.ts";
import type { AssetFormat } from "./asset.entity.ts";
import { ASSET } from "./asset.refusals.ts";
import type { AssetLimits } from "./asset-limits.ts";

/** Bytes on their way in, and what is made of them. */
export type Content =
  | { as: "file"; bytes: AsyncIterable<Uint8Array> }
  /** Becomes one checked tar. `stripTop`: the one folder that holds everything is taken off the paths. */
  | { as: "archive"; kind: ArchiveKind; bytes: AsyncIterable<Uint8Array>; stripTop?: boolean }
  /** Files that come one by one; they become one checked tar too. */
  | { as: "entries"; entries: AsyncIterable<ArchiveEntry> };

export interface StoreDeps {
  objects: ObjectStore;
  limits: AssetLimits;
  /** A folder for zip files on their way; it is made when it is needed. */
  scratchDir: string;
}

/** Keeps bytes from being removed, as soon as it is known which they are. */
export type ClaimBytes = (object: StoredObject) => Promise<void>;

/** The claim failed: neither the content nor the store did. */
export class NotClaimed extends Error {}

/** A tar's headers, padding and long names, at most, for each file or folder. */
const TAR_OVERHEAD_BYTES = 4_096;

export function formatOf(content: Content): AssetFormat {
  return content.as === "file" ? "file" : "tar";
}

/**
 * Puts content into the store and has it claimed before it is there; nothing is ever whole in memory, and nothing remains
 * when it fails.
 *
 * @throws what `storeRefusal` tells apart, or whatever the content failed with
 */
export async function storeContent(
  deps: StoreDeps,
  id: string,
  content: Content,
  claim: ClaimBytes,
): Promise<StoredObject> {
  const { archive, importBytes } = deps.limits;
  const maxBytes = content.as === "file" ? importBytes : archive.bytes + 2 * archive.files * TAR_OVERHEAD_BYTES;
  const terms = { maxBytes, claim: toldApart(claim) };
  if (content.as === "archive" && content.kind === "zip") return storeZip(deps, id, content, terms);
  return deps.objects.put(bytesOf(content, deps.limits), terms);
}

/** A claim whose failure is not taken for the store's. */
export function toldApart(claim: ClaimBytes): ClaimBytes {
  return async (object) => {
    try {
      await claim(object);
    } catch (cause) {
      throw new NotClaimed("the bytes could not be claimed", { cause });
    }
  };
}

function bytesOf(content: Content, { archive }: AssetLimits): AsyncIterable<Uint8Array> {
  if (content.as === "file") return content.bytes;
  if (content.as === "entries") return checkedTar(content.entries, archive);
  const { kind, bytes, stripTop } = content;
  if (kind === "zip") throw new Error("a zip is read from a file");
  return normalisedTar({ kind, bytes }, archive, { stripTop });
}

/** A zip's list of entries is at its end, so it is read from a file. */
async function storeZip(
  { objects, limits, scratchDir }: StoreDeps,
  id: string,
  { bytes, stripTop }: Extract<Content, { as: "archive" }>,
  terms: PutTerms,
): Promise<StoredObject> {
  const spool = path.join(scratchDir, `${id}.zip`);
  try {
    await mkdir(scratchDir, { recursive: true, mode: 0o700 });
    await pipeline(Readable.from(bytes, { objectMode: false }), createWriteStream(spool, { mode: 0o600 }));
    return await objects.put(normalisedTar({ kind: "zip", path: spool }, limits.archive, { stripTop }), terms);
  } finally {
    await rm(spool, { force: true });
  }
}

/** A failure that is not the sender's: the claim's, too much of it, or the store's own (502, worth another try). */
export function storeRefusal(error: unknown): unknown {
  if (error instanceof NotClaimed) return error.cause;
  if (error instanceof Refused) return error;
  const kind = error instanceof ObjectTooLarge ? ASSET.asset_too_large : ASSET.object_store_unavailable;
  return Object.assign(new Refused(kind), { cause: error });
}
