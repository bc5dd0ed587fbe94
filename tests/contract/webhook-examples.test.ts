import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { isFromNodus } from "../../docs/examples/verify-webhook.ts";
import { webhookSigner } from "../../subgraphs/data/webhook/webhook-signer.ts";

interface Vector {
  name: string;
  secret: string;
  /** Null: the request has no such header. */
  timestamp: string | null;
  signature: string | null;
  body: string;
  now_seconds: number;
  valid: boolean;
}

const file = (name: string) => fileURLToPath(new URL(`../../docs/examples/${name}`, import.meta.url));
const vectors: Vector[] = JSON.parse(readFileSync(file("webhook-vectors.json"), "utf8"));

describe("the example in TypeScript", () => {
  test.each(vectors.map((vector) => [vector.name, vector] as const))("judges %s", (_, vector) => {
    const { secret, timestamp, signature, body, now_seconds, valid } = vector;
    expect(isFromNodus(secret, timestamp, signature, Buffer.from(body, "utf8"), now_seconds)).toBe(valid);
  });
});

test("what is valid there is what the platform signs", () => {
  const valid = vectors.filter((vector) => vector.valid);
  expect(valid.length).toBeGreaterThan(3);
  for (const { secret, timestamp, signature, body } of valid)
    expect(webhookSigner.sign(Buffer.from(body, "utf8"), secret, Number(timestamp))).toBe(signature);
});

const JUDGE = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("verify_webhook", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps([
    module.is_from_nodus(v["secret"], v["timestamp"], v["signature"], v["body"].encode("utf-8"), v["now_seconds"])
    for v in json.load(open(sys.argv[2], encoding="utf-8"))
]))
`;

test("the example in Python judges every vector alike", ({ skip }) => {
  if (spawnSync("python3", ["--version"]).status !== 0) skip("the program python3 is missing (Debian package python3)");
  const args = ["-B", "-c", JUDGE, file("verify-webhook.py"), file("webhook-vectors.json")];
  const answer = execFileSync("python3", args, { encoding: "utf8", timeout: 20_000 });
  expect(JSON.parse(answer)).toEqual(vectors.map(({ valid }) => valid));
}, 30_000);
