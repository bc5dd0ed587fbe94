import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import {
  type ByteRange,
  type CanLink,
  clampRange,
  type LinkTerms,
  type ListedObject,
  type ListingPage,
  ObjectDamaged,
  type ObjectStore,
  type OpenObject,
  type PutTerms,
  requireNamePrefix,
  requireObjectName,
  type StoredObject,
} from "./object-store.ts";
import { ask, askForOne, type S3Settings, s3Client } from "./s3-client.ts";
import { copyWithin, putWhole, S3_SIZES, type S3Bucket, type S3Sizes, uploadStream } from "./s3-upload.ts";

/** A body that says nothing for so long while it is read is given up. */
const SILENCE_MS = 60_000;
/** Most keys that a store lists in one answer. */
const LISTED_AT_ONCE = 1_000;

/**
 * Objects in a bucket, `<prefix>/objects/<sha256>`, for any number of hosts. A name is known only when a stream has
 * ended, so a large object is put in parts under `<prefix>/temp/` and copied to its name within the store; a name thus
 * always stands for the whole content, and a crash can only leave something in `temp/`.
 */
export class S3Store implements ObjectStore, CanLink {
  readonly #within: S3Bucket;
  readonly #prefix: string;

  /** @param prefix what keys begin with, without a slash at its end; two prefixes in one bucket are two stores */
  constructor(settings: S3Settings, prefix: string, sizes: S3Sizes = S3_SIZES) {
    this.#within = { client: s3Client(settings), bucket: settings.bucket, sizes };
    this.#prefix = prefix;
  }

  async put(source: AsyncIterable<Uint8Array>, { maxBytes, claim }: PutTerms): Promise<StoredObject> {
    const temp = this.#temp();
    const stored = await uploadStream(this.#within, temp, source, maxBytes);
    const { sha256, bytes } = stored;
    if ("body" in stored) {
      await claim?.({ sha256, bytes });
      await putWhole(this.#within, this.#keyOf(sha256), stored.body);
      return { sha256, bytes };
    }
    try {
      await claim?.({ sha256, bytes });
      await copyWithin(this.#within, temp, this.#keyOf(sha256), bytes);
      const copied = await this.#bytesOf(sha256);
      if (copied !== bytes) throw new ObjectDamaged(`the object store copied ${copied} of ${bytes} bytes`);
    } finally {
      // Left to the sweep when it fails: the object itself is there, or the first error is the one to tell.
      await this.#delete(temp).catch(() => {});
    }
    return { sha256, bytes };
  }

  async open(sha256: string, range?: ByteRange): Promise<OpenObject | null> {
    if (!range) return this.#read(sha256, null);
    const bytes = await this.#bytesOf(sha256);
    if (bytes === null) return null;
    const part = clampRange(range, bytes);
    return this.#read(sha256, part && { ...part, bytes });
  }

  async has(sha256: string): Promise<boolean> {
    return (await this.#bytesOf(sha256)) !== null;
  }

  async remove(sha256: string): Promise<void> {
    await this.#delete(this.#keyOf(sha256));
  }

  link(sha256: string, { expiresInSeconds, fileName }: LinkTerms): Promise<string> {
    const command = new GetObjectCommand({
      ...this.#at(this.#keyOf(sha256)),
      ResponseContentDisposition: `attachment; filename*=UTF-8''${encodeURIComponent(fileName)}`,
    });
    return ask("sign a link", getSignedUrl(this.#within.client, command, { expiresIn: expiresInSeconds }));
  }

  async list({ prefix = "", after, limit }: ListingPage): Promise<ListedObject[]> {
    requireNamePrefix(prefix);
    const folder = `${this.#prefix}/objects/`;
    const listed: ListedObject[] = [];
    for (let last = after ?? null; listed.length < limit; ) {
      const wanted = Math.min(limit - listed.length, LISTED_AT_ONCE);
      const page = await this.#keys(folder + prefix, last === null ? null : folder + last, wanted);
      for (const { key, ...object } of page) listed.push({ sha256: key.slice(folder.length), ...object });
      if (page.length < wanted) break;
      last = listed.at(-1)!.sha256;
    }
    return listed;
  }

  async sweepTemp(olderThanMs: number): Promise<number> {
    const before = new Date(Date.now() - olderThanMs);
    return (await this.#sweepUploads(before)) + (await this.#sweepObjects(before));
  }

  async ping(probeBytes = 4): Promise<void> {
    const key = this.#temp();
    await putWhole(this.#within, key, Buffer.alloc(probeBytes));
    await this.#delete(key);
  }

  /** Opens an object, or a part that lies within it. */
  async #read(sha256: string, part: { start: number; end: number; bytes: number } | null): Promise<OpenObject | null> {
    const range = part ? { Range: `bytes=${part.start}-${part.end}` } : {};
    const command = new GetObjectCommand({ ...this.#at(this.#keyOf(sha256)), ...range });
    const answer = await askForOne("read an object", this.#within.client.send(command));
    if (!answer) return null;
    const streamBytes = answer.ContentLength ?? 0;
    const checked = checkedBytes(answer.Body as Readable, streamBytes, part ? null : sha256);
    return { stream: Readable.from(checked, { objectMode: false }), bytes: part?.bytes ?? streamBytes, streamBytes };
  }

  async #bytesOf(sha256: string): Promise<number | null> {
    const command = new HeadObjectCommand(this.#at(this.#keyOf(sha256)));
    const found = await askForOne("look for an object", this.#within.client.send(command));
    return found ? (found.ContentLength ?? 0) : null;
  }

  async #delete(key: string): Promise<void> {
    await askForOne("remove an object", this.#within.client.send(new DeleteObjectCommand(this.#at(key))));
  }

  async #keys(prefix: string, after: string | null, limit: number) {
    const command = new ListObjectsV2Command({
      Bucket: this.#within.bucket,
      Prefix: prefix,
      MaxKeys: limit,
      ...(after === null ? {} : { StartAfter: after }),
    });
    const { Contents = [] } = await ask("list objects", this.#within.client.send(command));
    return Contents.map(({ Key, Size, LastModified }) => ({
      key: Key!,
      bytes: Size ?? 0,
      storedAt: LastModified ?? new Date(),
    }));
  }

  /** Uploads in parts that nobody completed, wherever they were going. */
  async #sweepUploads(before: Date): Promise<number> {
    const { client, bucket } = this.#within;
    const listing = new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: `${this.#prefix}/` });
    const { Uploads = [] } = await ask("list uploads", client.send(listing));
    let swept = 0;
    for (const { Key, UploadId, Initiated } of Uploads) {
      if (!Initiated || Initiated > before) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId });
      await askForOne("give up an upload", client.send(abort));
      swept++;
    }
    return swept;
  }

  async #sweepObjects(before: Date): Promise<number> {
    let swept = 0;
    for (const { key, storedAt } of await this.#keys(`${this.#prefix}/temp/`, null, LISTED_AT_ONCE)) {
      if (storedAt > before) continue;
      await this.#delete(key);
      swept++;
    }
    return swept;
  }

  #temp(): string {
    return `${this.#prefix}/temp/${randomUUID()}`;
  }

  #keyOf(sha256: string): string {
    requireObjectName(sha256);
    return `${this.#prefix}/objects/${sha256}`;
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#within.bucket, Key: key };
  }
}

/** The bytes of a body, as many as were announced; those of a whole object are checked against its name. */
async function* checkedBytes(body: Readable, announced: number, sha256: string | null): AsyncGenerator<Buffer> {
  const hash = sha256 ? createHash("sha256") : null;
  let bytes = 0;
  try {
    for await (const chunk of untilSilent(body)) {
      bytes += chunk.length;
      hash?.update(chunk);
      // The last bytes are held back until they are known to be right.
      if (bytes === announced && hash && hash.digest("hex") !== sha256)
        throw new ObjectDamaged(`the object store has other bytes under ${sha256}`);
      yield chunk;
    }
  } finally {
    body.destroy();
  }
  if (bytes !== announced) throw new ObjectDamaged(`${bytes} bytes came instead of ${announced}`);
}

/** A reader may take its time; the store may not, once it is asked for more. */
async function* untilSilent(body: Readable): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    const silence = setTimeout(() => body.destroy(new Error("the object store fell silent")), SILENCE_MS);
    const next = await chunks.next().finally(() => clearTimeout(silence));
    if (next.done) return;
    yield next.value as Buffer;
  }
}
