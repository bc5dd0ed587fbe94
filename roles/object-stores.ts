import path from "node:path";
import type { ObjectStore } from "../infra/objects/object-store.ts";
import { openObjectStore } from "../infra/objects/open.ts";
import type { S3Settings } from "../infra/objects/s3-client.ts";
import type { Settings } from "../infra/telemetry/environment.ts";

/** Two stores, so that removing an asset's bytes can never take an equal output or log with it. */
export interface ObjectStores {
  assets: ObjectStore;
  results: ObjectStore;
}

/** Opens both stores: two prefixes of the bucket, or two folders of this host. Throws `ObjectStoreRefused`. */
export async function openObjectStores(settings: Settings): Promise<ObjectStores> {
  const s3 = s3Of(settings);
  const open = (prefix: string) =>
    openObjectStore({ folder: path.join(settings.dataDir, "objects", prefix), s3, prefix });
  return { assets: await open("assets"), results: await open("results") };
}

/** The bucket; null without one. Settings are given all together or not at all. */
function s3Of(settings: Settings): S3Settings | null {
  const { s3Endpoint, s3Bucket, s3Region, s3AccessKeyId, s3SecretAccessKey } = settings;
  if (!s3Endpoint || !s3Bucket || !s3AccessKeyId || !s3SecretAccessKey) return null;
  return {
    endpoint: s3Endpoint,
    bucket: s3Bucket,
    region: s3Region,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
  };
}
