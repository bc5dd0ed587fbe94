import { createHash, type Hash } from "node:crypto";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from "@aws-sdk/client-s3";
import { ObjectTooLarge, type StoredObject } from "./object-store.ts";
import { ask } from "./s3-client.ts";

/** Sizes in bytes; a store takes at most 10,000 parts, and none but the last below 5 MiB. */
export interface S3Sizes {
  /** What a put holds in memory is at most three of these. */
  partBytes: number;
  /** The largest piece that the store copies in one request. */
  copyBytes: number;
}

export const S3_SIZES: S3Sizes = { partBytes: 8 * 1024 * 1024, copyBytes: 1024 * 1024 * 1024 };

/** Where requests go. */
export interface S3Bucket {
  client: S3Client;
  bucket: string;
  sizes: S3Sizes;
}

/** Parts that are sent at the same time, beside the one that fills up. */
const PARTS_UNDER_WAY = 2;

/** A stream's beginning, when it ended within one part: such an object needs no multipart upload. */
export interface SmallObject extends StoredObject {
  body: Buffer;
}

/**
 * Reads a stream and puts it under `key`, part by part. A stream that ends within its first part is handed back whole
 * and nothing is put. When anything fails, the parts are given up.
 *
 * @throws ObjectTooLarge as soon as more than `maxBytes` have come, or whatever the stream or the store failed with
 */
export async function uploadStream(
  to: S3Bucket,
  key: string,
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<StoredObject | SmallObject> {
  const hash = createHash("sha256");
  const parts = partsOf(source, to.sizes.partBytes, maxBytes, hash);
  let upload: MultipartUpload | null = null;
  let bytes = 0;
  try {
    for await (const { body, last } of parts) {
      bytes += body.length;
      if (last && !upload) return { sha256: hash.digest("hex"), bytes, body };
      upload ??= await MultipartUpload.begin(to, key);
      if (body.length > 0) await upload.send(body);
    }
    await upload!.complete();
    return { sha256: hash.digest("hex"), bytes };
  } catch (error) {
    await upload?.abort();
    throw error;
  }
}

/** Puts a small object under its name, in one request. */
export async function putWhole({ client, bucket }: S3Bucket, key: string, body: Buffer): Promise<void> {
  await ask(
    "store an object",
    client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentMD5: md5(body) })),
  );
}

/** Gives a stored object another name, within the store. */
export async function copyWithin(within: S3Bucket, from: string, key: string, bytes: number): Promise<void> {
  const { client, bucket, sizes } = within;
  const source = `${bucket}/${from}`;
  if (bytes <= sizes.copyBytes) {
    await ask("store an object", client.send(new CopyObjectCommand({ Bucket: bucket, Key: key, CopySource: source })));
    return;
  }
  const upload = await MultipartUpload.begin(within, key);
  try {
    for (let start = 0; start < bytes; start += sizes.copyBytes)
      await upload.copy(source, start, Math.min(start + sizes.copyBytes, bytes) - 1);
    await upload.complete();
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

/** Which part of which upload. */
interface PartTarget {
  Bucket: string;
  Key: string;
  UploadId: string;
  PartNumber: number;
}

/** An upload in parts, which is there as a whole once it is completed, and not at all before. */
class MultipartUpload {
  readonly #to: S3Bucket;
  readonly #key: string;
  readonly #id: string;
  readonly #parts: Promise<{ PartNumber: number; ETag: string | undefined }>[] = [];

  private constructor(to: S3Bucket, key: string, id: string) {
    this.#to = to;
    this.#key = key;
    this.#id = id;
  }

  static async begin(to: S3Bucket, key: string): Promise<MultipartUpload> {
    const command = new CreateMultipartUploadCommand({ Bucket: to.bucket, Key: key });
    const { UploadId } = await ask("begin an upload", to.client.send(command));
    return new MultipartUpload(to, key, UploadId!);
  }

  /** Sends a part; waits only while enough others are under way. */
  async send(body: Buffer): Promise<void> {
    this.#add(async (target) => {
      const command = new UploadPartCommand({ ...target, Body: body, ContentMD5: md5(body) });
      return (await ask("store a part", this.#to.client.send(command))).ETag;
    });
    await this.#parts.at(-PARTS_UNDER_WAY);
  }

  async copy(source: string, start: number, end: number): Promise<void> {
    const range = { CopySource: source, CopySourceRange: `bytes=${start}-${end}` };
    this.#add(async (target) => {
      const command = new UploadPartCopyCommand({ ...target, ...range });
      return (await ask("copy a part", this.#to.client.send(command))).CopyPartResult?.ETag;
    });
    await this.#parts.at(-1);
  }

  async complete(): Promise<void> {
    const Parts = await Promise.all(this.#parts);
    const command = new CompleteMultipartUploadCommand({ ...this.#target(), MultipartUpload: { Parts } });
    await ask("finish an upload", this.#to.client.send(command));
  }

  /** Gives the parts up. What fails here is left to the sweep of temporary objects. */
  async abort(): Promise<void> {
    await Promise.allSettled(this.#parts); // a part that ends later would stay
    const command = new AbortMultipartUploadCommand(this.#target());
    await this.#to.client.send(command).catch(() => {}); // the first error is the one to tell
  }

  #add(request: (target: PartTarget) => Promise<string | undefined>): void {
    const PartNumber = this.#parts.length + 1;
    const part = request({ ...this.#target(), PartNumber }).then((ETag) => ({ PartNumber, ETag }));
    part.catch(() => {}); // told when it is waited for
    this.#parts.push(part);
  }

  #target() {
    return { Bucket: this.#to.bucket, Key: this.#key, UploadId: this.#id };
  }
}

interface Part {
  body: Buffer;
  /** Nothing follows; it may be short or empty. */
  last: boolean;
}

/** Cuts a stream into parts of equal size, hashing what passes. */
async function* partsOf(
  source: AsyncIterable<Uint8Array>,
  partBytes: number,
  maxBytes: number,
  hash: Hash,
): AsyncGenerator<Part> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  let total = 0;
  for await (const chunk of source) {
    total += chunk.byteLength;
    if (total > maxBytes) throw new ObjectTooLarge(maxBytes);
    hash.update(chunk);
    for (let rest = chunk; rest.byteLength > 0; ) {
      const piece = rest.subarray(0, partBytes - held);
      pieces.push(piece);
      held += piece.byteLength;
      rest = rest.subarray(piece.byteLength);
      if (held < partBytes) continue;
      yield { body: Buffer.concat(pieces), last: false };
      pieces = [];
      held = 0;
    }
  }
  yield { body: Buffer.concat(pieces), last: true };
}

function md5(body: Buffer): string {
  return createHash("md5").update(body).digest("base64");
}
