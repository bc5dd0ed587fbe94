import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RecordCounter } from "./record-counter.ts";

const UNLIMITED = { rows: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER };
const csv = (rows: string[][]) =>
  rows.map((r) => `${r.map((v) => `"${v.replaceAll('"', '""')}"`).join(",")}\n`).join("");

async function count(text: string, counter: RecordCounter, pieceBytes = 7): Promise<string> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, i) =>
    bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes),
  );
  const out: Buffer[] = [];
  await pipeline(Readable.from(pieces), counter, async (source: AsyncIterable<Buffer>) => {
    for await (const piece of source) out.push(piece);
  });
  return Buffer.concat(out).toString();
}

test("records are counted whatever their values hold and however they are cut into pieces", async () => {
  const value = fc.oneof(fc.string(), fc.constantFrom("\n", '"', '"\n"', "\r\n", ""));
  const table = fc.array(fc.array(value, { minLength: 1, maxLength: 3 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(table, fc.integer({ min: 1, max: 30 }), async (rows, pieceBytes) => {
      const text = csv(rows);
      const counter = new RecordCounter(UNLIMITED, { header: false });
      expect(await count(text, counter, pieceBytes)).toBe(text);
      expect([counter.rows, counter.bytes]).toEqual([rows.length, Buffer.byteLength(text)]);
    }),
  );
});

test("a header is no record", async () => {
  const counter = new RecordCounter(UNLIMITED, { header: true });
  await count('"a\nb"\n1\n2\n', counter);
  expect(counter.rows).toBe(2);
});

test("the limits hold to the record and the byte, and the failure says how many rows had come", async () => {
  const text = "1\n2\n3\n";
  await count(text, new RecordCounter({ rows: 3, bytes: 6 }, { header: false }), 2);
  await expect(count(text, new RecordCounter({ rows: 2, bytes: 6 }, { header: false }), 2)).rejects.toMatchObject({
    word: "row_limit",
    message: "The query has more than 2 rows; 3 had come.",
  });
  await expect(count(text, new RecordCounter({ rows: 3, bytes: 5 }, { header: false }), 2)).rejects.toMatchObject({
    word: "byte_limit",
    message: "The result has more than 5 bytes as CSV; 3 rows had come.",
  });
});
