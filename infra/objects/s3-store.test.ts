import { createHash, randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { objectStoreConformance } from "../../tests/conformance/object-store.ts";
import { swiftMissing, type TestS3, testS3 } from "../../tests/support/swift.ts";
import { ObjectDamaged, ObjectTooLarge, StorageFull, StoreUnavailable } from "./object-store.ts";
import { ObjectStoreRefused, openObjectStore } from "./open.ts";
import { type S3Settings, s3Client } from "./s3-client.ts";
import { S3Store } from "./s3-store.ts";
import type { S3Sizes } from "./s3-upload.ts";

const MIB = 1024 * 1024;
/** As small as stores allow, so that tests see many parts. */
const SMALL: S3Sizes = { partBytes: 5 * MIB, copyBytes: 6 * MIB };
const missing = swiftMissing();

describe.skipIf(missing)(`an S3 server that verifies signatures${missing ? `: ${missing}` : ""}`, () => {
  let server: TestS3;
  let client: S3Client;
  const settings = (more: Partial<S3Settings> = {}): S3Settings => ({ ...server, bucket: "objects", ...more });

  beforeAll(async () => {
    server = await testS3();
    client = s3Client(settings());
    await client.send(new CreateBucketCommand({ Bucket: "objects" }));
  }, 60_000);

  afterAll(async () => {
    client?.destroy();
    await server?.close();
  });

  const keys = async (prefix: string): Promise<string[]> => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: "objects", Prefix: `${prefix}/` }));
    const { Uploads = [] } = await client.send(
      new ListMultipartUploadsCommand({ Bucket: "objects", Prefix: `${prefix}/` }),
    );
    return [...Contents.map((c) => c.Key!), ...Uploads.map((u) => `upload of ${u.Key}`)];
  };

  objectStoreConformance("a bucket", async () => {
    const prefix = randomUUID();
    return { store: new S3Store(settings(), prefix), leftovers: () => keys(prefix), close: async () => {} };
  });

  test.each([
    ["a part to the byte", 5 * MIB],
    ["two parts, copied at once", 6 * MIB],
    ["four parts, copied in three pieces", 17 * MIB + 1],
  ])("an object of %s comes back whole", async (_, size) => {
    const prefix = randomUUID();
    const store = new S3Store(settings(), prefix, SMALL);
    const bytes = randomBytes(size);
    const { sha256 } = await store.put(Readable.from(inChunks(bytes)), { maxBytes: size });
    expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(bytes.equals(await buffer((await store.open(sha256))!.stream))).toBe(true);
    const part = await buffer((await store.open(sha256, { start: 5 * MIB - 10, end: 5 * MIB + 10 }))!.stream);
    expect(part.equals(bytes.subarray(5 * MIB - 10, 5 * MIB + 11))).toBe(true);
    expect(await keys(prefix)).toEqual([`${prefix}/objects/${sha256}`]);
  });

  test("a large put that breaks gives its parts up, and so does one over its limit", async () => {
    const prefix = randomUUID();
    const store = new S3Store(settings(), prefix, SMALL);
    const breaking = async function* () {
      yield randomBytes(12 * MIB);
      throw new Error("the connection broke");
    };
    await expect(store.put(breaking(), { maxBytes: 100 * MIB })).rejects.toThrow("the connection broke");
    const tooLarge = Readable.from(inChunks(randomBytes(12 * MIB)));
    await expect(store.put(tooLarge, { maxBytes: 11 * MIB })).rejects.toThrow(ObjectTooLarge);
    expect(await keys(prefix)).toEqual([]);
  });

  test("sweeping gives up what a crash left behind, in its own prefix only", async () => {
    const [prefix, other] = [randomUUID(), randomUUID()];
    for (const name of [prefix, other]) {
      await client.send(new CreateMultipartUploadCommand({ Bucket: "objects", Key: `${name}/temp/begun` }));
      await client.send(new PutObjectCommand({ Bucket: "objects", Key: `${name}/temp/not-yet-copied`, Body: "x" }));
    }
    const store = new S3Store(settings(), prefix);
    const { sha256 } = await store.put(Readable.from([randomBytes(10)]), { maxBytes: 10 });
    expect(await store.sweepTemp(3_600_000)).toBe(0);
    expect(await store.sweepTemp(-60_000)).toBe(2); // everything counts as old
    expect(await keys(prefix)).toEqual([`${prefix}/objects/${sha256}`]);
    expect(await keys(other)).toHaveLength(2);
  });

  test("a link reads one object for a while, and nothing else once it is changed", async () => {
    const prefix = randomUUID();
    const store = new S3Store(settings(), prefix);
    const [bytes, others] = [randomBytes(100), randomBytes(100)];
    const { sha256 } = await store.put(Readable.from([bytes]), { maxBytes: 100 });
    const { sha256: other } = await store.put(Readable.from([others]), { maxBytes: 100 });
    const link = await store.link(sha256, { expiresInSeconds: 60, fileName: 'a "b" ü.txt' });
    const answer = await fetch(link);
    expect(bytes.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
    expect(answer.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a%20%22b%22%20%C3%BC.txt");
    for (const changed of [link.replace(sha256, other), link.replace("X-Amz-Expires=60", "X-Amz-Expires=6000")]) {
      expect(changed).not.toBe(link);
      expect((await fetch(changed)).status).toBe(403);
    }
    const stranger = new S3Store(settings({ secretAccessKey: "another-secret" }), prefix);
    const forged = await stranger.link(sha256, { expiresInSeconds: 60, fileName: "a" });
    expect((await fetch(forged)).status).toBe(403);
  });

  test("other bytes under an object's name are found out while they are read", async () => {
    const prefix = randomUUID();
    const store = new S3Store(settings(), prefix);
    const { sha256 } = await store.put(Readable.from([randomBytes(100)]), { maxBytes: 100 });
    const Key = `${prefix}/objects/${sha256}`;
    await client.send(new PutObjectCommand({ Bucket: "objects", Key, Body: randomBytes(100) }));
    await expect(buffer((await store.open(sha256))!.stream)).rejects.toThrow(ObjectDamaged);
  });

  test.each<[string, Partial<S3Settings>, RegExp]>([
    ["an unknown bucket", { bucket: "no-such-bucket" }, /^S3_BUCKET: .* has no bucket no-such-bucket/],
    ["an unknown key", { accessKeyId: "test:stranger" }, /S3_ACCESS_KEY_ID, or there is no such key/],
    ["a wrong secret", { secretAccessKey: "another-secret" }, /^S3_SECRET_ACCESS_KEY: /],
    ["a wrong region", { region: "eu-nowhere-1" }, /^S3_REGION: /],
    ["nobody listening", { endpoint: "http://127.0.0.1:9" }, /^S3_ENDPOINT: .*ECONNREFUSED/],
  ])("a start with %s is refused by the setting's name", async (_, wrong, message) => {
    const s3 = settings(wrong);
    const refusal = await openObjectStore({ folder: "/nowhere", s3, prefix: "assets" }).catch((error) => error);
    expect(refusal).toBeInstanceOf(ObjectStoreRefused);
    expect(refusal.message).toMatch(message);
    expect(refusal.message).not.toContain(s3.secretAccessKey);
  });

  test("a wrong secret reads and writes nothing, and its fault names neither host nor key", async () => {
    const store = new S3Store(settings({ secretAccessKey: "another-secret" }), "assets");
    const fault = await store.put(Readable.from([randomBytes(10)]), { maxBytes: 10 }).catch((error) => error);
    expect(fault).toBeInstanceOf(StoreUnavailable);
    expect(fault.message).toBe("the object store failed to store an object (SignatureDoesNotMatch)");
    await expect(store.has("0".repeat(64))).rejects.toThrow(StoreUnavailable);
  });

  test("a request whose signed headers were changed on the way is refused", async () => {
    const tampering = s3Client(settings());
    tampering.middlewareStack.add(
      (next) => (args) => {
        const request = args.request as { path: string };
        request.path = request.path.replace("mine", "theirs");
        return next(args);
      },
      { step: "finalizeRequest", priority: "low" },
    );
    await client.send(new PutObjectCommand({ Bucket: "objects", Key: "theirs", Body: "secret" }));
    const reading = tampering.send(new GetObjectCommand({ Bucket: "objects", Key: "mine" }));
    await expect(reading).rejects.toMatchObject({ name: "SignatureDoesNotMatch" });
    tampering.destroy();
  });
});

test("a store that has no space left is told apart from other faults", async () => {
  const full = createServer((request, response) => {
    request.resume();
    response.writeHead(507, { "content-type": "application/xml" }).end("<Error><Code>QuotaExceeded</Code></Error>");
  });
  await new Promise<void>((resolve) => full.listen(0, "127.0.0.1", resolve));
  try {
    const endpoint = `http://127.0.0.1:${(full.address() as AddressInfo).port}`;
    const keys = { accessKeyId: "key", secretAccessKey: "secret" };
    const store = new S3Store({ endpoint, bucket: "objects", region: "us-east-1", ...keys }, "assets");
    await expect(store.put(Readable.from([randomBytes(10)]), { maxBytes: 10 })).rejects.toThrow(StorageFull);
  } finally {
    full.closeAllConnections();
    full.close();
  }
});

function* inChunks(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 300_000) yield bytes.subarray(start, start + 300_000);
}
