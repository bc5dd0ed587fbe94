import { S3Client } from "@aws-sdk/client-s3";
import { StorageFull, StoreUnavailable } from "./object-store.ts";

/** Where an S3-compatible store is, and who we are there. */
export interface S3Settings {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

const CONNECT_MS = 5_000;
/** Until the answer begins; a body may take longer. */
const ANSWER_MS = 60_000;
/** Every open download holds a connection. */
const CONNECTIONS = 1_000;

/** A client for one store. It retries what passed by, and signs every request. */
export function s3Client(settings: S3Settings): S3Client {
  return new S3Client({
    endpoint: settings.endpoint,
    region: settings.region,
    credentials: { accessKeyId: settings.accessKeyId, secretAccessKey: settings.secretAccessKey },
    forcePathStyle: true,
    // Stores other than Amazon's do not know the newer checksums; parts carry their MD5, whole objects our SHA-256.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: ANSWER_MS,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: CONNECTIONS },
      httpsAgent: { keepAlive: true, maxSockets: CONNECTIONS },
    },
  });
}

/** What stores say when they take no more bytes. */
const FULL = new Set(["QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage"]);
const FULL_STATUS = 507;

interface S3Fault {
  name?: string;
  Code?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

/** The store's word for what went wrong. */
function faultCode(error: unknown): string {
  const { name, Code, code, $metadata } = (error ?? {}) as S3Fault;
  if (Code) return Code;
  if (code) return code;
  if (name && name !== "Error" && name !== "Unknown" && name !== "UnknownError") return name;
  return $metadata?.httpStatusCode ? `status ${$metadata.httpStatusCode}` : "no answer";
}

/** The store says that there is no such object, or upload. */
function isMissing(error: unknown): boolean {
  return ["NoSuchKey", "NotFound", "NoSuchUpload"].includes(faultCode(error));
}

/** Runs one request; what fails is a `StorageFull` or a `StoreUnavailable` that says what was being done. */
export async function ask<T>(operation: string, request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    const code = faultCode(error);
    if (FULL.has(code) || (error as S3Fault).$metadata?.httpStatusCode === FULL_STATUS)
      throw new StorageFull("the object store has no space left", { cause: error });
    throw new StoreUnavailable(operation, code, { cause: error });
  }
}

/** Like `ask`; null when there is no such object. */
export async function askForOne<T>(operation: string, request: Promise<T>): Promise<T | null> {
  return ask(
    operation,
    request.catch((error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    }),
  );
}
