import path from "node:path";
import { openDiskStore } from "./disk-store.ts";
import { type ObjectStore, StoreUnavailable } from "./object-store.ts";
import type { S3Settings } from "./s3-client.ts";

export interface ObjectStoreSettings {
  /** Folder of this store, on this one host; unused with `s3`. */
  folder: string;
  /** The bucket, when objects are kept in one. */
  s3: S3Settings | null;
  /** Name of this store within the bucket. */
  prefix: string;
}

/** The object store cannot be used as the settings say. Its message is for the operator. */
export class ObjectStoreRefused extends Error {
  override readonly name = "ObjectStoreRefused";
}

/**
 * Opens one of the deployment's object stores and tries it.
 *
 * @throws ObjectStoreRefused naming the setting to look at, when the bucket cannot be written
 */
export async function openObjectStore({ folder, s3, prefix }: ObjectStoreSettings): Promise<ObjectStore> {
  if (!s3) return openDiskStore(path.join(folder, "store"));
  const { S3Store } = await import("./s3-store.ts"); // a tenth of a second that a store on disk need not pay
  const store = new S3Store(s3, prefix);
  try {
    await store.list({ limit: 1 }); // tells a missing bucket from a wrong key, which a write does not everywhere
    await store.ping();
    return store;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new ObjectStoreRefused(whatToDo(error.code, s3), { cause: error });
  }
}

function whatToDo(code: string, s3: S3Settings): string {
  switch (code) {
    case "NoSuchBucket":
      return `S3_BUCKET: the store at ${s3.endpoint} has no bucket ${s3.bucket}. Make it, or correct the name.`;
    case "InvalidAccessKeyId":
      return `S3_ACCESS_KEY_ID: the store at ${s3.endpoint} does not know this key.`;
    case "SignatureDoesNotMatch":
      return `S3_SECRET_ACCESS_KEY: the store at ${s3.endpoint} refuses the signature. It is not the secret of the key in S3_ACCESS_KEY_ID, or there is no such key.`;
    case "AuthorizationHeaderMalformed":
    case "PermanentRedirect":
    case "IllegalLocationConstraintException":
      return `S3_REGION: the bucket ${s3.bucket} is not in ${s3.region}.`;
    case "AccessDenied":
      return `S3_BUCKET: the key may not list, write and delete objects in the bucket ${s3.bucket}. Allow it, or use another key.`;
    default:
      return `S3_ENDPOINT: the store at ${s3.endpoint} cannot be used (${code}).`;
  }
}
