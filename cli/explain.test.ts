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
  [new Error("Client has encountered a connection error and is not queryable"), "The database went away"],
  [withCode("ECONNRESET"), "The database went away"],
  [withCode("25P03"), "The database went away"],
  [new Error("a command failed", { cause: withCode("57P01") }), "(a command failed: 57P01: something)"],
  [withCode("53100"), "The database lacks what this needs (53100: something)"],
  [withCode("ENOSPC"), "cannot be written: its disk is full"],
  [Object.assign(withCode("EACCES"), { syscall: "listen" }), "Set PORT"],
])("%s is told in a sentence and without a stack", (error, part) => {
  expect(explain(error)).toContain(part);
  expect(explain(error)).not.toContain("    at ");
});

test("a fault of ours, and a file that is missing, show where it happened", () => {
  for (const error of [new Error("a bug"), withCode("ENOENT")]) expect(explain(error)).toContain("    at ");
});
