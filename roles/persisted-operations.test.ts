import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readPersistedOperations } from "./persisted-operations.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "nodus-manifest-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function manifest(content: string): string {
  const file = path.join(folder, "manifest.json");
  writeFileSync(file, content);
  return file;
}

test("operations of a manifest are known by their hash", () => {
  const file = manifest(
    JSON.stringify({
      format: "apollo-persisted-query-manifest",
      version: 1,
      operations: [{ id: "abc", name: "me", type: "query", body: "{ me { email } }" }],
    }),
  );
  expect([...readPersistedOperations(file)]).toEqual([["abc", "{ me { email } }"]]);
});

test.each([["{"], ["{}"], ['{"format":"apollo-persisted-query-manifest","version":2,"operations":[]}']])(
  "a file that is no manifest is refused by the setting's name: %s",
  (content) => {
    expect(() => readPersistedOperations(manifest(content))).toThrow(/NODUS_PERSISTED_OPERATIONS/);
  },
);
