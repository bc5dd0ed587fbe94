import { expect, test } from "vitest";
import { hashToken, orderToken } from "./order-token.ts";

const KEY = new Uint8Array(32).fill(1);

test("a token is the same for the same order and key, and another one otherwise", () => {
  const token = orderToken(KEY, "ord_1");
  expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(orderToken(KEY, "ord_1")).toBe(token);
  expect(orderToken(KEY, "ord_2")).not.toBe(token);
  expect(orderToken(new Uint8Array(32).fill(2), "ord_1")).not.toBe(token);
});

test("what is stored of a token is its SHA-256 in hex", () => {
  expect(hashToken("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
