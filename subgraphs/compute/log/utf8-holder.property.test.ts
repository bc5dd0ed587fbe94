import fc from "fast-check";
import { expect, test } from "vitest";
import { HELD_BYTES, Utf8Holder } from "./utf8-holder.ts";

/** Bytes that are partly text and partly not. */
const bytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc.string({ unit: "binary", maxLength: 6 }).map((s) => Buffer.from(s)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts));

test("pieces give the text of the whole, wherever they are cut", () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(60)), (whole, cuts) => {
      const holder = new Utf8Holder();
      const at = [0, ...cuts.filter((c) => c < whole.length), whole.length].sort((a, b) => a - b);
      const text = at.slice(1).map((end, i) => holder.text(whole.subarray(at[i]!, end)));
      expect(text.join("") + holder.end()).toBe(whole.toString("utf8"));
    }),
    { numRuns: 3000 },
  );
});

test("a reader that comes later needs only the last bytes before it to give the same text", () => {
  fc.assert(
    fc.property(bytes, fc.nat(60), (whole, place) => {
      const cut = place % (whole.length + 1);
      const first = new Utf8Holder();
      const before = first.text(whole.subarray(0, cut));
      const later = new Utf8Holder(whole.subarray(Math.max(0, cut - HELD_BYTES), cut));
      expect(before + later.text(whole.subarray(cut)) + later.end()).toBe(whole.toString("utf8"));
    }),
    { numRuns: 3000 },
  );
});
