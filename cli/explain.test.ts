import { expect, test } from "vitest";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { ClientError } from "./client.ts";
import { explain } from "./explain.ts";

const withCode = (code: string) => Object.assign(new Error(`${code}: something`), { code });

test.each([
  [new Refused(COMMON.not_found), "There is no such object. Check the id"],
  [new ClientError("Set NODUS_API_KEY."), "Set NODUS_API_KEY."],
  [withCode("EADDRINUSE"), "set PORT"],
  [withCode("EROFS"), "NODUS_DATA_DIR"],
  [withCode("EACCES"), "NODUS_DATA_DIR"],
  [withCode("55P03"), "holds a row"],
  [new Error("a statement failed", { cause: withCode("55P03") }), "holds a row"],
  [withCode("57P01"), "The database went away"],
  [new Error("Connection terminated unexpectedly"), "The database went away"],
])("%s is told in a sentence and without a stack", (error, part) => {
  expect(explain(error)).toContain(part);
  expect(explain(error)).not.toContain("    at ");
});

test("a fault of ours shows where it happened", () => {
  expect(explain(new Error("a bug"))).toContain("    at ");
});
