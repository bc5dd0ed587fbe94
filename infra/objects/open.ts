import path from "node:path";
import { openDiskStore } from "./disk-store.ts";
import type { ObjectStore } from "./object-store.ts";

export interface ObjectStoreSettings {
  /** The platform's data folder; objects live in its `objects` folder. */
  dataDir: string;
  /** `S3_ENDPOINT`, if set. */
  s3Endpoint?: string | undefined;
  /** `S3_BUCKET`, if set. */
  s3Bucket?: string | undefined;
}

/** The settings ask for something that this release has not got. Its message is for the operator. */
export class UnsupportedObjectStore extends Error {
  override readonly name = "UnsupportedObjectStore";
}

/** Opens the deployment's object store. Refuses S3 settings by name, so that nobody believes objects to be shared. */
export function openObjectStore(settings: ObjectStoreSettings): Promise<ObjectStore> {
  const given = [settings.s3Endpoint && "S3_ENDPOINT", settings.s3Bucket && "S3_BUCKET"].filter(Boolean);
  if (given.length > 0) {
    throw new UnsupportedObjectStore(
      `${given.join(" and ")} is set, but this release stores objects on disk only. ` +
        "Unset it to keep objects under NODUS_DATA_DIR on this one host.",
    );
  }
  return openDiskStore(path.join(settings.dataDir, "store"));
}
