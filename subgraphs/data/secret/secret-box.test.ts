import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SecretBox } from "./secret-box.ts";

const old = { id: "mk-1", key: randomBytes(32) };
const next = { id: "mk-2", key: randomBytes(32) };
const bytes = fc.uint8Array({ maxLength: 5000 });

test("what is sealed opens to the same bytes, in its own place only", () => {
  const box = new SecretBox(old);
  fc.assert(
    fc.property(bytes, fc.string(), fc.string(), (value, context, elsewhere) => {
      const sealed = box.seal(value, context);
      expect(box.open(sealed, context).equals(value)).toBe(true);
      if (elsewhere !== context) expect(() => box.open(sealed, elsewhere)).toThrow();
    }),
  );
});

test("a change of any one bit is noticed", () => {
  const box = new SecretBox(old);
  const part = fc.constantFrom("wrappedKey" as const, "ciphertext" as const);
  fc.assert(
    fc.property(bytes, part, fc.nat(), (value, field, position) => {
      const sealed = box.seal(value, "here");
      const changed = Buffer.from(sealed[field]);
      changed[(position >> 3) % changed.length]! ^= 1 << (position & 7);
      expect(() => box.open({ ...sealed, [field]: changed }, "here")).toThrow();
    }),
  );
});

test("cutting a sealed value short is noticed, down to nothing", () => {
  const box = new SecretBox(old);
  const sealed = box.seal(Buffer.from("value"), "here");
  for (let length = 0; length < sealed.ciphertext.length; length++)
    expect(() => box.open({ ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) }, "here")).toThrow();
});

test("the sealed bytes do not hold the value, and never repeat", () => {
  const box = new SecretBox(old);
  const value = Buffer.from("correct horse battery staple");
  const [a, b] = [box.seal(value, "here"), box.seal(value, "here")];
  expect(a.ciphertext.includes(value)).toBe(false);
  expect(a.ciphertext.equals(b.ciphertext)).toBe(false);
  expect(a.wrappedKey.equals(b.wrappedKey)).toBe(false);
});

test("after a rotation the old key still opens, and a rewrapped value needs the new one only", () => {
  const sealed = new SecretBox(old).seal(Buffer.from("value"), "here");
  const rotated = new SecretBox(next, [old]);
  expect(rotated.open(sealed, "here").toString()).toBe("value");
  const rewrapped = rotated.rewrap(sealed, "here");
  expect(rewrapped.masterKeyId).toBe("mk-2");
  expect(new SecretBox(next).open(rewrapped, "here").toString()).toBe("value");
  expect(() => new SecretBox(next).open(sealed, "here")).toThrow("master key mk-1 is not configured");
});

test("a master key of the wrong length is refused by its name", () => {
  expect(() => new SecretBox({ id: "mk-3", key: randomBytes(16) })).toThrow("mk-3");
});
