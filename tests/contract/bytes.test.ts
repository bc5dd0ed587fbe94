import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import Fastify, { type FastifyInstance } from "fastify";
import { buildSchema, execute, parse } from "graphql";
import { afterEach, describe, expect, it } from "vitest";
import { OpenStreams } from "../../gateway/open-streams.ts";
import { Refused, refusals } from "../../infra/kernel/refusal.ts";
import { downloadOutput } from "../../rest-compat/bytes/download-output.ts";
import { uploadAsset } from "../../rest-compat/bytes/upload-asset.ts";
import { workloadLogs } from "../../rest-compat/bytes/workload-logs.ts";
import { readContract } from "../../rest-compat/contract.ts";
import type { BytesPorts, LogContent } from "../../rest-compat/ports.ts";
import { restCompat } from "../../rest-compat/run.ts";
import { REST_SERVER_OPTIONS } from "../../rest-compat/server-options.ts";
import { checkResponse } from "./check-response.ts";

const contract = readContract(fileURLToPath(new URL("../../schema/contract/openapi.json", import.meta.url)));
const schema = buildSchema("type Asset { id: ID! name: String state: String } type Query { asset(id: ID!): Asset }");
const documents = new Map([["uploadAsset", parse("query ($id: ID!) { reply: asset(id: $id) { id name state } }")]]);
const actor = { tenantId: "t", keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes: [] } as const;
const authorization = "Bearer k";
const REFUSED = refusals({
  asset_too_large: [400, "Too large.", "Send less."],
  output_gone: [410, "Gone.", "Run again."],
});

const streams = new OpenStreams({ perTeam: 100, withoutKey: 1 });
const open: FastifyInstance[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

async function face(bytes: Partial<BytesPorts>): Promise<FastifyInstance> {
  const app = Fastify({ ...REST_SERVER_OPTIONS, forceCloseConnections: true });
  open.push(app);
  const missing = () => Promise.reject(new Error("not part of this test"));
  await app.register(restCompat, {
    contract,
    documents,
    schema,
    table: { uploadAsset, downloadWorkloadOutput: downloadOutput, getWorkloadLogs: workloadLogs },
    extensions: [],
    helpUrl: (code: string) => `https://nodus.test/${code}`,
    ports: {
      authenticate: async () => actor,
      execute: async ({ document, variables }) => {
        const rootValue = { asset: ({ id }: { id: string }) => ({ id, name: "n", state: "ready" }) };
        return JSON.parse(
          JSON.stringify(await execute({ schema, document, rootValue, variableValues: variables })),
        ) as never;
      },
      openStream: ({ tenantId }) => streams.open("bytes", tenantId),
      bytes: { uploadAsset: missing, importAsset: missing, openOutput: missing, openLog: missing, ...bytes },
    },
  });
  return app;
}

async function drain(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe("an upload", () => {
  it("streams the body to the store and answers the asset's record", async () => {
    const seen: { name: string; bytes: Buffer }[] = [];
    const app = await face({
      uploadAsset: async ({ name, content }) => {
        seen.push({ name, bytes: await drain(content) });
        return "asset_1";
      },
    });
    const payload = Buffer.alloc(3_000_000, 7);
    for (const [query, name] of [
      ["?name=a%2Fb.tar", "a/b.tar"],
      ["", "dataset"],
    ]) {
      const answer = await app.inject({
        method: "POST",
        url: `/v1/assets/upload${query}`,
        headers: { authorization, "content-type": "application/octet-stream" },
        payload,
      });
      checkResponse("uploadAsset", answer.statusCode, answer.headers, answer.json());
      expect([answer.statusCode, answer.json().id, seen.at(-1)!.name, seen.at(-1)!.bytes.equals(payload)]).toEqual([
        201,
        "asset_1",
        name,
        true,
      ]);
    }
  });

  it("takes an empty body and refuses a form", async () => {
    const app = await face({ uploadAsset: async ({ content }) => `asset_${(await drain(content)).byteLength}` });
    const empty = await app.inject({ method: "POST", url: "/v1/assets/upload", headers: { authorization } });
    expect(empty.json().id).toBe("asset_0");
    const form = await app.inject({
      method: "POST",
      url: "/v1/assets/upload",
      headers: { authorization, "content-type": "multipart/form-data; boundary=x" },
      payload: "--x--",
    });
    checkResponse("uploadAsset", form.statusCode, form.headers, form.json());
    expect([form.statusCode, form.json().error]).toEqual([400, "invalid_request"]);
  });

  it("hands on a refusal of the store while the client still sends", async () => {
    const app = await face({ uploadAsset: () => Promise.reject(new Refused(REFUSED.asset_too_large)) });
    const origin = await app.listen({ port: 0, host: "127.0.0.1" });
    const body = new Blob([new Uint8Array(4_000_000)]).stream();
    const init = { method: "POST", headers: { authorization }, body, duplex: "half" };
    const answer = await fetch(`${origin}/v1/assets/upload`, init as RequestInit);
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, "asset_too_large"]);
  });
});

describe("an output", () => {
  it("comes with its hash, its length and a safe name, and HEAD opens nothing", async () => {
    let opened = 0;
    const asked: unknown[] = [];
    const app = await face({
      openOutput: async ({ workloadId, name, stageId }) => {
        asked.push([workloadId, name, stageId]);
        const openOne = () => {
          opened++;
          return Readable.from([Buffer.from("re"), Buffer.from("sult")]);
        };
        return { sha256: "ab".repeat(32), byteCount: 6, fileName: 'a"b.tar', open: openOne };
      },
    });
    const url = "/v1/workloads/wl_1/outputs/results.tar";
    const get = await app.inject({ url: `${url}?stage=main`, headers: { authorization } });
    checkResponse("downloadWorkloadOutput", get.statusCode, get.headers, get.body);
    expect([get.body, get.headers["content-length"], get.headers["x-nodus-sha256"]]).toEqual([
      "result",
      "6",
      "ab".repeat(32),
    ]);
    expect(get.headers["content-disposition"]).toContain('filename="a_b.tar"');
    const head = await app.inject({ method: "HEAD", url, headers: { authorization } });
    expect([head.statusCode, head.headers["content-length"], head.body]).toEqual([200, "6", ""]);
    expect(asked).toEqual([
      ["wl_1", "results.tar", "main"],
      ["wl_1", "results.tar", null],
    ]);
    expect(opened).toBe(1);
  });

  it("breaks off visibly when its stream fails half-way", async () => {
    const broken = () =>
      Readable.from(
        (async function* () {
          yield Buffer.from("re");
          throw new Error("the disk is gone");
        })(),
      );
    const app = await face({
      openOutput: async () => ({ sha256: "ab".repeat(32), byteCount: 6, fileName: "a", open: broken }),
    });
    const origin = await app.listen({ port: 0, host: "127.0.0.1" });
    await expect(
      fetch(`${origin}/v1/workloads/wl_1/outputs/a`, { headers: { authorization } }).then((answer) =>
        answer.arrayBuffer(),
      ),
    ).rejects.toThrow();
  });

  it("says 410 for one that is kept no longer", async () => {
    const app = await face({ openOutput: () => Promise.reject(new Refused(REFUSED.output_gone)) });
    const answer = await app.inject({ url: "/v1/workloads/wl_1/outputs/a", headers: { authorization } });
    checkResponse("downloadWorkloadOutput", answer.statusCode, answer.headers, answer.json());
    expect([answer.statusCode, answer.json().error]).toEqual([410, "output_gone"]);
  });
});

describe("a saved log", () => {
  const log = (over: Partial<LogContent>): LogContent => ({
    stageId: "main",
    generation: 2,
    sha256: "cd".repeat(32),
    source: "committed",
    truncated: false,
    byteCount: 3,
    open: () => Readable.from([Buffer.from([0x61, 0xff, 0x0a])]),
    ...over,
  });

  it("is the stored bytes as text, with the attempt in the headers", async () => {
    const app = await face({ openLog: async () => log({}) });
    const answer = await app.inject({ url: "/v1/workloads/wl_1/logs", headers: { authorization } });
    checkResponse("getWorkloadLogs", answer.statusCode, answer.headers, answer.body);
    expect([...answer.rawPayload]).toEqual([0x61, 0xff, 0x0a]);
    expect(answer.headers).toMatchObject({
      "x-nodus-stage-id": "main",
      "x-nodus-generation": "2",
      "x-nodus-sha256": "cd".repeat(32),
      "content-length": "3",
    });
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("x-nodus-log"))).toEqual([]);
  });

  it("says of a snapshot that it is one and whether bytes are missing, and leaves out what is not known", async () => {
    const app = await face({
      openLog: async () => log({ source: "live-snapshot", truncated: true, sha256: null, byteCount: null }),
    });
    const answer = await app.inject({ url: "/v1/workloads/wl_1/logs", headers: { authorization } });
    checkResponse("getWorkloadLogs", answer.statusCode, answer.headers, answer.body);
    expect(answer.headers).toMatchObject({ "x-nodus-log-source": "live-snapshot", "x-nodus-log-truncated": "true" });
    expect(answer.headers["x-nodus-sha256"]).toBeUndefined();
  });

  it("asks for the stage and attempt that the query names, and refuses an attempt that cannot be", async () => {
    const asked: unknown[] = [];
    const app = await face({
      openLog: async ({ workloadId, stageId, generation }) => {
        asked.push([workloadId, stageId, generation]);
        return log({});
      },
    });
    const get = (query: string) => app.inject({ url: `/v1/workloads/wl_1/logs${query}`, headers: { authorization } });
    await get("?stage=eval&generation=3");
    await get("");
    expect(asked).toEqual([
      ["wl_1", "eval", 3],
      ["wl_1", null, null],
    ]);
    for (const query of ["?generation=0", "?generation=-1", "?generation=x"])
      expect((await get(query)).json()).toMatchObject({ error: "invalid_request", field: "/generation" });
  });
});
