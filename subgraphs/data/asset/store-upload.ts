import type { Database } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { StoredObject } from "../../../infra/objects/object-store.ts";
import { archiveKindOf } from "./archive/archive-kind.ts";
import type { Asset } from "./asset.entity.ts";
import { ASSET } from "./asset.refusals.ts";
import { requireAssetName } from "./asset-name.ts";
import {
  abandonUpload,
  beginUpload,
  claimObject,
  commitUpload,
  reportUpload,
  type Upload,
} from "./asset-upload.commands.ts";
import { ByteMeter } from "./byte-meter.ts";
import { type Content, formatOf, type StoreDeps, storeContent, storeRefusal } from "./store-content.ts";

/** The store must be one of assets alone: what no asset refers to is removed from it. */
export interface UploadDeps extends StoreDeps {
  db: Database;
  clock: Clock;
}

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
    const meter = new ByteMeter(limits.importBytes, reports(deps, upload));
    const bytes = meter.through(input.stream);
    const content: Content = kind ? { as: "archive", kind, bytes } : { as: "file", bytes };
    const object = await store(deps, upload, content, meter);
    if (!(await deps.objects.has(object.sha256))) throw new Refused(ASSET.asset_commit_failed);
    const stored = { name, ...object, importedBytes: meter.bytes, format: formatOf(content) };
    return await commitUpload(db, upload, stored, limits, clock.now());
  } catch (error) {
    // Without a database it cannot be forgotten now; the sweep does it, and the first error is the one to tell.
    await abandonUpload(db, upload).catch(() => {});
    throw error;
  }
}

/** Tells who is to blame when it fails: the sender (400) or the store (502, worth another try). */
async function store(deps: UploadDeps, upload: Upload, content: Content, meter: ByteMeter): Promise<StoredObject> {
  try {
    return await storeContent(deps, upload.id, content, (object) => claimObject(deps, upload, object));
  } catch (error) {
    if (error instanceof Refused || meter.failure === null) throw storeRefusal(error);
    const broken = new Refused(ASSET.invalid_import, { message: "The upload broke off before its end." });
    throw Object.assign(broken, { cause: error });
  }
}

/** Says every now and then that the upload is alive and how far it is. */
function reports({ db, clock, limits }: UploadDeps, upload: Upload): (bytes: number) => Promise<void> {
  let reported = { bytes: 0, atMs: clock.monotonicMs() };
  return async (bytes) => {
    const nowMs = clock.monotonicMs();
    if (bytes - reported.bytes < REPORT_EVERY_BYTES && nowMs - reported.atMs < REPORT_EVERY_MS) return;
    reported = { bytes, atMs: nowMs };
    await reportUpload(db, upload, bytes, limits, clock.now());
  };
}
