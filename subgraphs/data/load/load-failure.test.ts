import { expect, test } from "vitest";
import { ColumnarFailure, type ColumnarReason } from "../../../infra/columnar/task.ts";
import { ConnectionFailure, FAILURE_REASONS } from "../connection/connection-failure.ts";
import { LOAD_FAILURE_WORDS, loadFailure, targetFailure } from "./load-failure.ts";

test("each way in which a file cannot be worked on has its word", () => {
  const word = (detail: ColumnarReason) => loadFailure(new ColumnarFailure(detail)).word;
  for (const reason of ["unreadable", "crashed"] as const) expect(word({ reason })).toBe("unsupported_file");
  expect(word({ reason: "column_names", column: "a" })).toBe("unsupported_file");
  expect(word({ reason: "column_type", column: "a" })).toBe("unsupported_file");
  expect(word({ reason: "column_type", column: "a", line: 2 })).toBe("type_mismatch");
  expect(word({ reason: "unrepresentable", column: "a" })).toBe("type_mismatch");
  for (const reason of ["limit", "memory", "timeout"] as const) expect(word({ reason })).toBe("size_limit");
  for (const reason of ["lost", "disk", "cancelled"] as const) expect(word({ reason })).toBe("internal");
});

test("each way in which a database is not reached has its word", () => {
  const words = FAILURE_REASONS.map((reason) => loadFailure(new ConnectionFailure(reason)).word);
  expect(new Set(words)).toEqual(new Set(["connection_lost", "credential_inactive"]));
  expect(loadFailure(new ConnectionFailure("credentials_rejected")).word).toBe("credential_inactive");
});

test.each([
  ["42501", "permission_denied"],
  ["25006", "permission_denied"],
  ["22P02", "type_mismatch"],
  ["22003", "type_mismatch"],
  ["23505", "table_incompatible"],
  ["3F000", "table_incompatible"],
  ["42703", "table_incompatible"],
  ["42804", "table_incompatible"],
  ["P0001", "table_incompatible"],
  ["54000", "size_limit"],
  ["57014", "connection_lost"],
  ["57P01", "connection_lost"],
  ["53100", "connection_lost"],
  ["40P01", "connection_lost"],
  ["ECONNRESET", "connection_lost"],
])("an error %s of the target is %s, and its text is not repeated", (code, word) => {
  const failure = targetFailure(Object.assign(new Error("hunter2"), { code }));
  expect(failure.word).toBe(word);
  expect(failure.message).not.toContain("hunter2");
  expect(LOAD_FAILURE_WORDS).toContain(failure.word);
});

test("what nobody foresaw is internal, and its text is not repeated", () => {
  expect(loadFailure(new Error("hunter2"))).toMatchObject({ word: "internal", message: "Error" });
});
