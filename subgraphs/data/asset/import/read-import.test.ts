import { expect, test } from "vitest";
import { type ImportFields, readSourceImport, requireMembersOf } from "./read-import.ts";
import { nameOf } from "./source-request.ts";

const read = (fields: ImportFields) => {
  requireMembersOf(fields);
  return readSourceImport(fields);
};

test.for<[ImportFields, object, string]>([
  [{ kind: "github", repo: "o-1/n.a_me" }, { owner: "o-1", repo: "n.a_me", ref: "main" }, "n.a_me"],
  [{ kind: "github", repo: "https://github.com/o/n.git", ref: "" }, { owner: "o", repo: "n", ref: "main" }, "n"],
  [{ kind: "github", repo: "https://github.com/o/n/", ref: "feature/x" }, { repo: "n", ref: "feature/x" }, "n"],
  [{ kind: "huggingface", repo: "squad" }, { type: "datasets", repo: "squad", files: null }, "squad"],
  [{ kind: "huggingface", repo: "o/n", files: ["*.csv"] }, { type: "datasets", repo: "o/n", files: ["*.csv"] }, "n"],
  [{ kind: "huggingface", repo: "https://huggingface.co/datasets/o/n" }, { type: "datasets", repo: "o/n" }, "n"],
  [{ kind: "huggingface", repo: "https://huggingface.co/o/n" }, { type: "models", repo: "o/n" }, "n"],
  [
    { kind: "url", url: "https://a.example/x/b%C3%A4.csv?s=1#f" },
    { url: "https://a.example/x/b%C3%A4.csv?s=1" },
    "bä.csv",
  ],
  [{ kind: "url", url: "https://a.example/" }, {}, "download"],
  [{ kind: "url", url: "https://a.example/..%2Fetc" }, {}, "download"],
  [{ kind: "url", url: "https://a.example/%ff" }, {}, "download"],
  [{ kind: "url", url: "https://a.example/x", format: "parquet", reuse: false, token: "", files: null }, {}, "x"],
])("%j is understood", ([fields, wanted, name]) => {
  const { source } = read(fields);
  expect(source).toMatchObject({ kind: fields.kind, ...wanted });
  expect(nameOf(source)).toBe(name);
});

const gh = (over: Partial<ImportFields>): ImportFields => ({ kind: "github", repo: "o/n", ...over });
const hf = (over: Partial<ImportFields>): ImportFields => ({ kind: "huggingface", repo: "o/n", ...over });
test.for<[ImportFields, string, string]>([
  [{ kind: "github" }, "invalid_import", "/repo"],
  [gh({ repo: "o" }), "invalid_import", "/repo"],
  [gh({ repo: "o/.." }), "invalid_import", "/repo"],
  [gh({ repo: "o/n/x" }), "invalid_import", "/repo"],
  [gh({ repo: "http://github.com/o/n" }), "invalid_import", "/repo"],
  [gh({ repo: "https://evil.example/o/n" }), "invalid_import", "/repo"],
  [gh({ url: "https://a.example" }), "invalid_import", "/url"],
  [gh({ connectionId: "conn_1" }), "invalid_import", "/connection_id"],
  [gh({ files: ["*"] }), "invalid_import", "/files"],
  [gh({ reuse: true }), "invalid_import", "/reuse"],
  [gh({ token: "a b" }), "invalid_import", "/token"],
  [gh({ token: "a\r\nX: 1" }), "invalid_import", "/token"],
  ...[
    "a\r\nb",
    "a b",
    "..",
    "a/../b",
    "/a",
    "a/",
    "a..b",
    "a//b",
    "-a",
    ".a",
    "a/.b",
    "a.lock",
    "a~1",
    "a@{1}",
    "x".repeat(256),
  ].map((ref): [ImportFields, string, string] => [gh({ ref }), "invalid_ref", "/ref"]),
  [hf({ repo: "a/b/c" }), "invalid_import", "/repo"],
  [hf({ files: [] }), "invalid_import", "/files"],
  [hf({ files: Array(101).fill("*") }), "invalid_import", "/files"],
  [hf({ files: ["*", ""] }), "invalid_import", "/files/1"],
  [hf({ files: ["a\nb"] }), "invalid_import", "/files/0"],
  [{ kind: "url" }, "invalid_import", "/url"],
  [{ kind: "url", url: "http://a.example/x" }, "invalid_import", "/url"],
  [{ kind: "url", url: "file:///etc/passwd" }, "invalid_import", "/url"],
  [{ kind: "url", url: "https://u:p@a.example/x" }, "token_not_allowed", "/url"],
  [{ kind: "url", url: "https://a.example/x", token: "t" }, "token_not_allowed", "/token"],
  [{ kind: "url", url: "https://a.example/x.rar" }, "unsupported_archive", "/url"],
  [{ kind: "url", url: `https://a.example/${"x".repeat(4_096)}` }, "invalid_import", "/url"],
])("%j is refused as %s at %s", ([fields, code, field]) => {
  expect(() => read(fields)).toThrow(expect.objectContaining({ kind: expect.objectContaining({ code, status: 400 }) }));
  expect(() => read(fields)).toThrow(expect.objectContaining({ detail: expect.objectContaining({ field }) }));
});
