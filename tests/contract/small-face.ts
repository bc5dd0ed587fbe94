import { Readable } from "node:stream";
import Fastify, { type FastifyInstance } from "fastify";
import { buildSchema, type DocumentNode, execute, parse } from "graphql";
import { afterEach } from "vitest";
import { OpenStreams } from "../../gateway/open-streams.ts";
import type { Actor } from "../../infra/kernel/actor.ts";
import { refusals } from "../../infra/kernel/refusal.ts";
import { contractOf } from "../../rest-compat/contract.ts";
import type { Extension } from "../../rest-compat/extension.ts";
import type { RestPorts } from "../../rest-compat/ports.ts";
import type { Table } from "../../rest-compat/row.ts";
import { restCompat } from "../../rest-compat/run.ts";
import { REST_SERVER_OPTIONS } from "../../rest-compat/server-options.ts";
import { smallContract } from "./small-contract.ts";

const schema = buildSchema(`
  scalar JSON
  input Settings { maxCostUsd: Float envVars: JSON }
  input Strict { onlyThis: Int! }
  input ThingInput { name: String settings: Settings strict: Strict }
  type Thing { id: ID! note: String goneAt: String echo: JSON }
  type Payload { thing: Thing! replayed: Boolean! }
  type Query { thing(id: ID!): Thing things(first: Int, after: String): JSON }
  type Mutation { createThing(input: ThingInput!, idempotencyKey: String): Payload deleteThing(id: ID!): Boolean }
`);
const documents = new Map<string, DocumentNode>(
  Object.entries({
    listThings: "query ($first: Int, $after: String) { reply: things(first: $first, after: $after) }",
    createThing:
      "mutation ($input: ThingInput!, $idempotencyKey: String) { reply: createThing(input: $input, idempotencyKey: $idempotencyKey) { replayed thing { id note gone_at: goneAt } } }",
    getThing: "query ($id: ID!) { reply: thing(id: $id) { id note gone_at: goneAt } }",
    deleteThing: "mutation ($id: ID!) { reply: deleteThing(id: $id) }",
    writeThing: "query ($id: ID!) { reply: thing(id: $id) { id } }",
  }).map(([name, text]) => [name, parse(text)]),
);
const table: Table = {
  listThings: {
    kind: "graph",
    take: ({ query }) => ({ first: query.limit, after: query.after }),
    give: (page) => ({ page }),
  },
  createThing: { kind: "graph", give: (reply) => reply.thing, refuseRepeats: ["/strict"] },
  getThing: { kind: "graph" },
  deleteThing: { kind: "graph" },
  readThing: {
    kind: "bytes",
    serve: async ({ reply, headOnly }) =>
      reply.header("Content-Length", "3").send(headOnly ? undefined : Readable.from([Buffer.from("abc")])),
  },
  writeThing: {
    kind: "bytes",
    document: true,
    serve: async ({ caller, content, ports, answerWith }) =>
      answerWith({ id: await ports.uploadAsset({ ...caller, name: "x", content }) }),
  },
};
const NOT_HERE = refusals({ not_here: [501, "Not in this release.", "Use something else."] });
const extensions: Extension[] = [
  { methods: ["get"], path: "/v1/extra", refuse: NOT_HERE.not_here },
  { methods: ["post"], path: "/v1/open", open: true, refuse: NOT_HERE.not_here },
];

const actor: Actor = { tenantId: "t", keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes: [] };

export interface Face {
  app: FastifyInstance;
  /** Variables of the documents that ran. */
  ran: Record<string, unknown>[];
  uploaded: Buffer[];
}

/** Closed after each test, whoever opened them. */
const open: FastifyInstance[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

export async function face(
  resolvers: Record<string, unknown> = {},
  onSignal: (signal: AbortSignal) => void = () => {},
  streams = new OpenStreams({ perTeam: 100, withoutKey: 1 }),
  bodyMs?: number,
): Promise<Face> {
  const ran: Record<string, unknown>[] = [];
  const uploaded: Buffer[] = [];
  const ports: RestPorts = {
    authenticate: async (header) => (header === "Bearer good" ? actor : null),
    execute: async ({ document, variables, signal }) => {
      onSignal(signal);
      ran.push(variables as Record<string, unknown>);
      return JSON.parse(
        JSON.stringify(await execute({ schema, document, rootValue: resolvers, variableValues: variables })),
      ) as never;
    },
    openStream: ({ tenantId }) => streams.open("bytes", tenantId),
    bytes: {
      uploadAsset: async ({ content }) => {
        for await (const chunk of content) uploaded.push(chunk as Buffer);
        return "thing_1";
      },
      importAsset: () => Promise.reject(new Error("not asked for here")),
      openOutput: () => Promise.reject(new Error("not used")),
      openLog: () => Promise.reject(new Error("not used")),
    },
  };
  const app = Fastify({ ...REST_SERVER_OPTIONS, forceCloseConnections: true });
  open.push(app);
  await app.register(restCompat, {
    contract: contractOf(smallContract),
    documents,
    schema,
    table,
    extensions,
    ports,
    bodyMs,
    helpUrl: (code: string) => `https://nodus.test/help#${code}`,
  });
  return { app, ran, uploaded };
}

export const authorization = "Bearer good";
export const create = (payload: unknown, headers: Record<string, string> = {}) => ({
  method: "POST" as const,
  url: "/v1/things",
  headers: { authorization, "idempotency-key": "k1", "content-type": "application/json", ...headers },
  payload: typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
});
export const made = { createThing: () => ({ thing: { id: "thing_1", note: null, goneAt: null }, replayed: false }) };
