import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Database } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { type ObjectStore, ObjectTooLarge, type StoredObject } from "../../../infra/objects/object-store.ts";
import { archiveKindOf } from "./archive/archive-kind.ts";
import type { ArchiveKind } from "./archive/entry.ts";
import { normalisedTar } from "./archive/normalise.ts";
import type { Asset } from "./asset.entity.ts";
import { ASSET } from "./asset.refusals.ts";
import type { AssetLimits } from "./asset-limits.ts";
import { requireAssetName } from "./asset-name.ts";
import {
  abandonUpload,
  beginUpload,
  claimObject,
  commitUpload,
  reportUpload,
  type Upload,
} from "./asset-upload.commands.ts";

export interface UploadDeps {
  db: Database;
  /** A store of assets alone: what no asset refers to is removed from it. */
  objects: ObjectStore;
  clock: Clock;
  limits: AssetLimits;
  /** A folder of this process for zip files on their way; whatever a crash left there may be removed at start. */
  scratchDir: string;
}

/** A tar's headers, padding and long names, at most, for each file or folder. */
const TAR_OVERHEAD_BYTES = 4_096;
const REPORT_EVERY_BYTES = 32 * 1024 * 1024;
const REPORT_EVERY_MS = 5_000;

/**
 * Takes the bytes of an upload and makes an asset of them: archives, told by the name's ending, become one checked tar,
 * anything else is kept as it is. Nothing is ever whole in memory. The asset's row is written after the bytes are safe;
 * when the stream breaks or anything is refused, nothing remains.
 */
export async function storeUpload(
  deps: UploadDeps,
  actor: Actor,
  input: { name: string; stream: AsyncIterable<Uint8Array> },
): Promise<Asset> {
  const name = requireAssetName(input.name);
  const kind = archiveKindOf(name);
  const { db, clock, limits } = deps;
  const upload = await beginUpload(db, actor.tenantId, limits, clock.now());
  try {
    const body = new UploadBody(deps, upload, input.stream);
    const object = await store(deps, upload, kind, body);
    await claimObject(db, upload, object, clock.now());
    if (!(await deps.objects.has(object.sha256))) throw new Refused(ASSET.asset_commit_failed);
    const stored = { name, ...object, importedBytes: body.bytes, format: kind ? ("tar" as const) : ("file" as const) };
    return await commitUpload(db, upload, stored, limits, clock.now());
  } catch (error) {
    // Without a database it cannot be forgotten now; the sweep does it, and the first error is the one to tell.
    await abandonUpload(db, upload).catch(() => {});
    throw error;
  }
}

async function store(
  deps: UploadDeps,
  upload: Upload,
  kind: ArchiveKind | null,
  body: UploadBody,
): Promise<StoredObject> {
  const { archive, importBytes } = deps.limits;
  const maxBytes = kind ? archive.bytes + 2 * archive.files * TAR_OVERHEAD_BYTES : importBytes;
  const spool = path.join(deps.scratchDir, `${upload.id}.zip`);
  try {
    if (kind === "zip")
      await pipeline(Readable.from(body, { objectMode: false }), createWriteStream(spool, { mode: 0o600 }));
    const bytes =
      kind === null ? body : normalisedTar(kind === "zip" ? { kind, path: spool } : { kind, bytes: body }, archive);
    return await deps.objects.put(bytes, { maxBytes });
  } catch (error) {
    throw reasonOf(error, body);
  } finally {
    if (kind === "zip") await rm(spool, { force: true });
  }
}

/** Tells who is to blame: the sender (400) or the store (502, worth another try). */
function reasonOf(error: unknown, body: UploadBody): unknown {
  if (error instanceof Refused) return error;
  if (error instanceof ObjectTooLarge) return new Refused(ASSET.asset_too_large);
  if (body.failure)
    return because(new Refused(ASSET.invalid_import, { message: "The upload broke off before its end." }), error);
  return because(new Refused(ASSET.object_store_unavailable), error);
}

function because(refused: Refused, cause: unknown): Refused {
  return Object.assign(refused, { cause });
}

/** The bytes as they come in: counted, limited, and reported to the database every now and then. */
class UploadBody implements AsyncIterable<Uint8Array> {
  bytes = 0;
  /** The stream's own failure, such as a sender that went away. */
  failure: unknown = null;
  readonly #deps: UploadDeps;
  readonly #upload: Upload;
  readonly #stream: AsyncIterable<Uint8Array>;
  #reported = { bytes: 0, atMs: 0 };

  constructor(deps: UploadDeps, upload: Upload, stream: AsyncIterable<Uint8Array>) {
    this.#deps = deps;
    this.#upload = upload;
    this.#stream = stream;
    this.#reported.atMs = deps.clock.monotonicMs();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of this.#watched()) {
      this.bytes += chunk.length;
      if (this.bytes > this.#deps.limits.importBytes)
        throw new Refused(ASSET.asset_too_large, {
          message: `One upload may have ${this.#deps.limits.importBytes} bytes.`,
          extra: { max_import_bytes: this.#deps.limits.importBytes },
        });
      await this.#report();
      yield chunk;
    }
  }

  async *#watched(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* this.#stream;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }

  async #report(): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const due =
      this.bytes - this.#reported.bytes >= REPORT_EVERY_BYTES || nowMs - this.#reported.atMs >= REPORT_EVERY_MS;
    if (!due) return;
    this.#reported = { bytes: this.bytes, atMs: nowMs };
    await reportUpload(this.#deps.db, this.#upload, this.bytes, this.#deps.limits, this.#deps.clock.now());
  }
}
