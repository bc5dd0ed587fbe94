import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  InvalidObjectName,
  type ObjectStore,
  ObjectTooLarge,
  RangeNotSatisfiable,
  type StoredObject,
} from "../../infra/objects/object-store.ts";

/** A store for one test, empty at first. */
export interface StoreUnderTest {
  store: ObjectStore;
  /** Everything that the store keeps, finished or not, by whatever name it has there. */
  leftovers(): Promise<string[]>;
  close(): Promise<void>;
}

const LIMIT = { maxBytes: 100_000_000 };
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

function stream(...chunks: Uint8Array[]): Readable {
  return Readable.from(chunks);
}

/** Yields some bytes and fails. */
async function* broken(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
  throw new Error("the connection broke");
}

/** What every object store must do. `make` is called for each test. */
export function objectStoreConformance(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`${name} as an object store`, () => {
    let under: StoreUnderTest;
    let store: ObjectStore;

    beforeEach(async () => {
      under = await make();
      store = under.store;
    });

    afterEach(() => under.close());

    /** Size of the whole object, as `open` says it. */
    const sizeOf = async (name: string, range?: { start: number; end?: number }) => {
      const found = await store.open(name, range);
      found?.stream.destroy();
      return found?.bytes;
    };

    const bytesOf = async (name: string, range?: { start: number; end?: number }) => {
      const found = await store.open(name, range);
      if (!found) return null;
      const bytes = await buffer(found.stream);
      expect(bytes.byteLength).toBe(found.streamBytes);
      return bytes;
    };

    test("gives back what was put, under its hash and with its size", async () => {
      const chunks = [randomBytes(1), randomBytes(70_000), randomBytes(1_000_000)];
      const whole = Buffer.concat(chunks);
      const stored = await store.put(stream(...chunks), LIMIT);
      expect(stored).toEqual({ sha256: sha256(whole), bytes: whole.byteLength });
      expect(await store.has(stored.sha256)).toBe(true);
      expect(await sizeOf(stored.sha256)).toBe(whole.byteLength);
      expect(whole.equals((await bytesOf(stored.sha256)) ?? Buffer.alloc(0))).toBe(true);
    });

    test("stores nothing at all as an object of no bytes", async () => {
      const stored = await store.put(stream(), LIMIT);
      expect(stored).toEqual({ sha256: sha256(Buffer.alloc(0)), bytes: 0 });
      expect(await bytesOf(stored.sha256)).toEqual(Buffer.alloc(0));
    });

    test("says that there is no object where there is none", async () => {
      const nothing = sha256(Buffer.from("never stored"));
      expect(await store.has(nothing)).toBe(false);
      expect(await store.open(nothing)).toBeNull();
      await store.remove(nothing);
    });

    test("removes an object, and takes it again afterwards", async () => {
      const bytes = randomBytes(10);
      const { sha256: name } = await store.put(stream(bytes), LIMIT);
      await store.remove(name);
      expect(await store.has(name)).toBe(false);
      await store.put(stream(bytes), LIMIT);
      expect(await bytesOf(name)).toEqual(bytes);
    });

    test.each([
      [{ start: 0 }, "0123456789"],
      [{ start: 0, end: 0 }, "0"],
      [{ start: 3, end: 5 }, "345"],
      [{ start: 9 }, "9"],
      [{ start: 8, end: 500 }, "89"],
    ])("opens the range %j", async (range, expected) => {
      const { sha256: name } = await store.put(stream(Buffer.from("0123456789")), LIMIT);
      expect((await bytesOf(name, range))?.toString()).toBe(expected);
      expect(await sizeOf(name, range)).toBe(10);
    });

    test.each([{ start: 10 }, { start: -1 }, { start: 5, end: 4 }, { start: 0.5 }, { start: Number.NaN }])(
      "refuses the range %j with the object's size",
      async (range) => {
        const { sha256: name } = await store.put(stream(Buffer.from("0123456789")), LIMIT);
        const refusal = await store.open(name, range).catch((error) => error);
        expect(refusal).toBeInstanceOf(RangeNotSatisfiable);
        expect(refusal.bytes).toBe(10);
      },
    );

    test.each([
      "",
      "..",
      "../../etc/passwd",
      "a".repeat(63),
      `${"a".repeat(62)}/.`,
      "A".repeat(64),
      `${"a".repeat(64)}\n`,
    ])("refuses %j as an object's name", async (name) => {
      await expect(store.open(name)).rejects.toThrow(InvalidObjectName);
      await expect(store.has(name)).rejects.toThrow(InvalidObjectName);
      await expect(store.remove(name)).rejects.toThrow(InvalidObjectName);
    });

    test("takes an object of exactly the limit", async () => {
      const bytes = randomBytes(1_000);
      expect((await store.put(stream(bytes.subarray(0, 600), bytes.subarray(600)), { maxBytes: 1_000 })).bytes).toBe(
        1_000,
      );
    });

    test("refuses an object over the limit, stops reading it and leaves nothing", async () => {
      let yielded = 0;
      const endless = Readable.from(
        (async function* () {
          for (;;) {
            yielded++;
            yield randomBytes(400);
          }
        })(),
      );
      const refusal = await store.put(endless, { maxBytes: 1_000 }).catch((error) => error);
      expect(refusal).toBeInstanceOf(ObjectTooLarge);
      expect(refusal.maxBytes).toBe(1_000);
      expect(endless.destroyed).toBe(true);
      expect(yielded).toBeLessThan(100);
      expect(await under.leftovers()).toEqual([]);
    });

    test("leaves nothing of a stream that breaks, and says why it broke", async () => {
      const bytes = randomBytes(100_000);
      await expect(store.put(broken(bytes), LIMIT)).rejects.toThrow("the connection broke");
      expect(await store.has(sha256(bytes))).toBe(false);
      expect(await under.leftovers()).toEqual([]);
    });

    test.each([1_000, 6_000_000])(
      "has %i bytes claimed before they are there, and leaves nothing when that fails",
      async (size) => {
        const bytes = randomBytes(size);
        const object = { sha256: sha256(bytes), bytes: size };
        const claimed: unknown[] = [];
        const claim = async (seen: StoredObject) => {
          claimed.push(seen, await store.has(seen.sha256));
        };
        const refused = store.put(stream(bytes), { ...LIMIT, claim: () => Promise.reject(new Error("not ours")) });
        await expect(refused).rejects.toThrow("not ours");
        expect(await under.leftovers()).toEqual([]);
        expect(await store.put(stream(bytes), { ...LIMIT, claim })).toEqual(object);
        expect(claimed).toEqual([object, false]);
        expect(await store.has(object.sha256)).toBe(true);
      },
    );

    test("an equal object survives a put of it that breaks", async () => {
      const bytes = randomBytes(1_000);
      const { sha256: name } = await store.put(stream(bytes), LIMIT);
      await expect(store.put(broken(bytes), LIMIT)).rejects.toThrow();
      expect(await bytesOf(name)).toEqual(bytes);
    });

    test("takes equal objects at the same time and keeps one", async () => {
      const bytes = randomBytes(200_000);
      const puts = Array.from({ length: 20 }, () => store.put(stream(bytes), LIMIT));
      const stored = await Promise.all(puts);
      expect(new Set(stored.map((s) => s.sha256)).size).toBe(1);
      expect(await bytesOf(sha256(bytes))).toEqual(bytes);
      expect(await under.leftovers()).toHaveLength(1);
    });

    test("a reader keeps its bytes while an equal object is put again", async () => {
      const bytes = randomBytes(3_000_000);
      const { sha256: name } = await store.put(stream(bytes), LIMIT);
      const reading = await store.open(name);
      await store.put(stream(bytes), LIMIT);
      expect(bytes.equals(await buffer(reading?.stream ?? Readable.from([])))).toBe(true);
    });

    test("lists what it has by name, page after page, with size and time", async () => {
      const before = Date.now() - 60_000; // the store's clock may count whole seconds
      const names = await Promise.all(
        Array.from({ length: 7 }, async (_, i) => (await store.put(stream(randomBytes(i)), LIMIT)).sha256),
      );
      const seen: string[] = [];
      for (let after: string | null = null; ; after = seen.at(-1)!) {
        const page = await store.list({ after, limit: 3 });
        seen.push(...page.map((object) => object.sha256));
        if (page.length < 3) break;
      }
      expect(seen).toEqual([...names].sort());
      const all = await store.list({ limit: 100 });
      for (const { sha256: name, bytes, storedAt } of all) {
        expect(bytes).toBe(names.indexOf(name));
        expect(storedAt.getTime()).toBeGreaterThan(before);
        expect(storedAt.getTime()).toBeLessThan(Date.now() + 60_000);
      }
    });

    test.each([0, 1, 2, 3, 4, 63, 64])("lists names by their first %i digits, behind any name", async (digits) => {
      const puts = Array.from({ length: 12 }, () => store.put(stream(randomBytes(9)), LIMIT));
      const names = (await Promise.all(puts)).map((object) => object.sha256).sort();
      const prefix = names[5]!.slice(0, digits);
      const wanted = names.filter((name) => name.startsWith(prefix));
      expect((await store.list({ prefix, limit: 50 })).map((o) => o.sha256)).toEqual(wanted);
      const after = `${names[5]!.slice(0, 63)}0`;
      const behind = (await store.list({ prefix, after, limit: 50 })).map((o) => o.sha256);
      expect(behind).toEqual(wanted.filter((name) => name > after));
    });

    test("lists neither what is removed nor what never ended", async () => {
      const { sha256: kept } = await store.put(stream(randomBytes(10)), LIMIT);
      const { sha256: removed } = await store.put(stream(randomBytes(10)), LIMIT);
      await store.put(broken(randomBytes(10)), LIMIT).catch(() => {});
      await store.remove(removed);
      expect((await store.list({ limit: 10 })).map((object) => object.sha256)).toEqual([kept]);
      expect(await store.list({ limit: 0 })).toEqual([]);
    });

    test.each(["../", "A", "g", "a".repeat(65)])("refuses %j as the beginning of names", async (prefix) => {
      await expect(store.list({ prefix, limit: 1 })).rejects.toThrow(InvalidObjectName);
    });

    test("answers when it is asked whether it works", async () => {
      await store.ping();
      expect(await under.leftovers()).toEqual([]);
    });

    test("has nothing to sweep after puts that ended, well or badly", async () => {
      await store.put(stream(randomBytes(10)), LIMIT);
      await store.put(broken(randomBytes(10)), LIMIT).catch(() => {});
      expect(await store.sweepTemp(0)).toBe(0);
    });
  });
}
