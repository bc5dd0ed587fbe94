import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parquetOf } from "../../tests/support/parquet-writer.ts";
import { requirePages } from "./parquet-pages.ts";
import { runColumnar } from "./run-columnar.ts";
import { ColumnarFailure } from "./task.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-pages-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const LIMITS = { rows: 1e6, columns: 8, recordBytes: 100_000, rowGroupBytes: 1e9 };

function described(content: Buffer, recordBytes: number) {
  const options = {
    folder,
    memoryLimitBytes: 400 * 1024 * 1024,
    timeoutMs: 20_000,
    signal: new AbortController().signal,
  };
  const task = { kind: "describe", input: "t.parquet", format: "parquet", limits: { ...LIMITS, recordBytes } } as const;
  return writeFile(path.join(folder, "t.parquet"), content).then(() => runColumnar(task, options));
}

test("a page of Parquet that is larger than a record may be is a limit, one that is not is none", async () => {
  // Random texts, so that no page is a small dictionary; each has 40 bytes and its length.
  const content = await parquetOf("select i, md5(i::text) || 'abcdefgh' as t from range(20000) r(i)");
  expect(await described(content, 2_000_000)).toMatchObject({ rows: 20_000 });
  await expect(described(content, 100_000)).rejects.toMatchObject({
    detail: { reason: "limit", limit: "recordBytes", count: expect.any(Number) },
  });
});

test("any bytes in the place of pages are pages, or a failure that says so", async () => {
  const file = path.join(folder, "noise");
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 600 }), async (bytes) => {
      await using handle = await open(file, "w");
      await handle.writeFile(bytes);
      const outcome = await requirePages(file, [{ offset: 0, bytes: bytes.length }], LIMITS).catch((error) => error);
      if (outcome !== undefined) expect(outcome).toBeInstanceOf(ColumnarFailure);
    }),
    { numRuns: 300 },
  );
});
