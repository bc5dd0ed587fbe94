import { fileURLToPath } from "node:url";
import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenStreams } from "../../gateway/open-streams.ts";
import { type Operation, readContract } from "../../rest-compat/contract.ts";
import { readDocuments } from "../../rest-compat/documents.ts";
import { helpUrl } from "../../rest-compat/help.ts";
import { restCompat } from "../../rest-compat/run.ts";
import { REST_SERVER_OPTIONS } from "../../rest-compat/server-options.ts";
import { EXTENSIONS } from "../../rest-compat/table/extensions.ts";
import { TABLE } from "../../rest-compat/table/table.ts";
import { checkResponse } from "./check-response.ts";
import { graphSchema } from "./graph-schema.ts";

const file = (path: string) => fileURLToPath(new URL(`../../schema/${path}`, import.meta.url));
const contract = readContract(file("contract/openapi.json"));
const operations = [...contract.operations.values()];
const actor = { tenantId: "t", keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes: [] } as const;
const authorization = "Bearer good";

let app: FastifyInstance;
/** Documents that reached the graph. Nothing here may. */
let reached = 0;

beforeAll(async () => {
  const unreachable = () => Promise.reject(new Error("this request must not get so far"));
  const streams = new OpenStreams({ perTeam: 1_000, withoutKey: 1 });
  app = Fastify({ ...REST_SERVER_OPTIONS, forceCloseConnections: true });
  await app.register(restCompat, {
    contract,
    documents: readDocuments(file("operations")),
    schema: graphSchema(),
    table: TABLE,
    extensions: EXTENSIONS,
    helpUrl: helpUrl("https://nodus.test"),
    ports: {
      authenticate: async (header) => (header === authorization ? actor : null),
      execute: () => {
        reached++;
        return unreachable();
      },
      openStream: ({ tenantId }) => streams.open("bytes", tenantId),
      bytes: { uploadAsset: unreachable, importAsset: unreachable, openOutput: unreachable, openLog: unreachable },
    },
  });
  await app.ready();
});
afterAll(() => app.close());

function ask({ method, path }: Pick<Operation, "method" | "path">, headers: Record<string, string>, payload?: string) {
  const url = path.replace("{port}", "8080").replace(/\{[^}]+\}/g, "x1");
  return app.inject({ method: method.toUpperCase() as "GET", url, headers, payload });
}

describe("every documented operation", () => {
  it.each(operations.map((operation) => [operation.id, operation] as const))(
    "%s wants credentials, in its own error body",
    async (id, operation) => {
      for (const headers of [
        {} as Record<string, string>,
        { authorization: "Bearer bad" },
        { authorization: "Basic good" },
      ]) {
        const answer = await ask(operation, headers);
        expect(answer.statusCode).toBe(401);
        if (operation.method === "head") continue;
        if (!operation.path.includes("/ports/")) checkResponse(id, 401, answer.headers, answer.json());
        expect(answer.json()).toMatchObject({
          ...(operation.envelope === "sandbox" ? { code: "unauthorized" } : { error: "unauthorized" }),
          fix: expect.stringMatching(/./),
          url: "https://nodus.test/help/errors#unauthorized",
        });
      }
    },
  );

  it.each(operations.filter(({ id }) => !TABLE[id]).map((operation) => [operation.id, operation] as const))(
    "%s is not served yet and says so",
    async (id, operation) => {
      const answer = await ask(operation, { authorization });
      expect(answer.statusCode).toBe(501);
      if (operation.method === "head") return;
      if (!operation.path.includes("/ports/")) checkResponse(id, 501, answer.headers, answer.json());
      expect(answer.json()).toMatchObject({
        ...(operation.envelope === "sandbox" ? { code: "not_implemented" } : { error: "not_implemented" }),
        fix: expect.stringMatching(/./),
        url: "https://nodus.test/help/errors#not_implemented",
      });
    },
  );

  it.each(
    operations.filter(({ id, body }) => TABLE[id] && body).map((operation) => [operation.id, operation] as const),
  )("%s refuses what is no JSON object before the graph is asked", async (id, operation) => {
    const headers = {
      authorization,
      "content-type": "application/json",
      ...(operation.keyed ? { "idempotency-key": "k" } : {}),
    };
    for (const payload of ["", "{", "[]", '"x"', "{}}", "null"]) {
      const answer = await ask(operation, headers, payload);
      checkResponse(id, answer.statusCode, answer.headers, answer.json());
      expect(answer.statusCode).toBe(400);
    }
    expect(
      (await ask(operation, { ...headers, "content-type": "application/x-www-form-urlencoded" }, "a=b")).statusCode,
    ).toBe(415);
    expect(reached).toBe(0);
  });
});

describe("paths beyond the contract", () => {
  it.each(
    EXTENSIONS.filter((extension) => "refuse" in extension).map((extension) => [extension.path, extension] as const),
  )("%s is refused by name with a way out", async (_, extension) => {
    if (!("refuse" in extension)) throw new Error("filtered above");
    const url = extension.path.replace(/\{[^}]+\}/g, "x1").replace("*", "a/b");
    for (const method of extension.methods) {
      const answer = await app.inject({ method: method.toUpperCase() as "GET", url, headers: { authorization } });
      expect(answer.statusCode).toBe(extension.refuse.status);
      if (method !== "head")
        expect(answer.json()).toMatchObject({ message: extension.refuse.message, fix: extension.refuse.fix });
    }
  });
});
