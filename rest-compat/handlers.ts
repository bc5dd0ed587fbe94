import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { DocumentNode, GraphQLSchema } from "graphql";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { sendAnswer } from "./answer.ts";
import { callerOf, holdStream } from "./caller.ts";
import type { Contract, Operation } from "./contract.ts";
import type { Documents } from "./documents.ts";
import { compileDocument, plainArguments } from "./operation.ts";
import type { RestPorts } from "./ports.ts";
import type { BytesRow, GraphRow, Row, WireRequest } from "./row.ts";
import { collect, readJsonBody, refuseRepeats } from "./wire/body.ts";
import { idempotencyKey } from "./wire/idempotency-key.ts";
import { queryReader, type RawQuery } from "./wire/query.ts";
import type { BodyChecks } from "./wire/shape.ts";

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** What rows are compiled against. */
export interface Compilation {
  readonly contract: Contract;
  readonly documents: Documents;
  /** The graph as callers see it: its input types drive the recasing. */
  readonly schema: GraphQLSchema;
  readonly checks: BodyChecks;
  readonly ports: RestPorts;
}

/** The handler of a documented operation; one without a row says that it is not served. */
export function handlerOf(compilation: Compilation, operation: Operation, row: Row | undefined): Handler {
  if (!row) return notImplemented;
  return row.kind === "graph" ? graphHandler(compilation, operation, row) : bytesHandler(compilation, operation, row);
}

const notImplemented: Handler = async () => {
  throw new Refused(COMMON.not_implemented);
};

function graphHandler(compilation: Compilation, operation: Operation, row: GraphRow): Handler {
  const { contract, schema, ports } = compilation;
  const run = compileDocument(contract, schema, operation, documentOf(compilation, operation), row, ports.execute);
  const read = requestReader(compilation, operation, row);
  const take = row.take ?? plainArguments;
  return async (request, reply) => {
    const wire = await read(request);
    return sendAnswer(reply, await run(take(wire), wire, callerOf(request, reply)));
  };
}

function bytesHandler(compilation: Compilation, operation: Operation, row: BytesRow): Handler {
  const { contract, schema, checks, ports } = compilation;
  const runs = new Map(
    (row.document ? operation.successes : []).map((status) => [
      status,
      compileDocument(contract, schema, operation, documentOf(compilation, operation), { status }, ports.execute),
    ]),
  );
  const check = operation.body && checks.compile(operation.body, "shape");
  const readQuery = queryReader(contract.document, operation);
  return async (request, reply) => {
    const caller = callerOf(request, reply);
    holdStream(ports, caller, reply);
    const wire: WireRequest = {
      path: pathOf(request),
      query: readQuery(request.query as RawQuery),
      body: null,
      idempotencyKey: null,
    };
    return row.serve({
      caller,
      wire,
      contentType: request.headers["content-type"],
      content: (request.body as Readable | undefined) ?? Readable.from([]),
      headOnly: request.method === "HEAD",
      readBody: async () => {
        const body = readJsonBody(await jsonBytes(request));
        check?.(body.value);
        return body.value;
      },
      reply,
      ports: ports.bytes,
      answerWith: async (variables, status = operation.successes[0]) => {
        const run = runs.get(status!);
        if (!run) throw new Error(`${operation.id} has no document for ${status}`);
        return sendAnswer(reply, await run(variables, wire, caller));
      },
    });
  };
}

/** Reads and checks a request in the order in which a caller can mend it: key, query, body. */
function requestReader(
  { contract, checks }: Compilation,
  operation: Operation,
  row: GraphRow,
): (request: FastifyRequest) => Promise<WireRequest> {
  const readQuery = queryReader(contract.document, operation);
  const check = operation.body && checks.compile(operation.body, row.check ?? "shape");
  return async (request) => {
    const key = operation.keyed ? idempotencyKey(request.headers["idempotency-key"]) : null;
    const query = readQuery(request.query as RawQuery);
    const path = pathOf(request);
    if (!check) return { path, query, body: null, idempotencyKey: key };
    const body = readJsonBody(await jsonBytes(request));
    refuseRepeats(body, row.refuseRepeats ?? []);
    row.refuseFirst?.(body.value);
    check(body.value);
    return { path, query, body: body.value, idempotencyKey: key };
  };
}

/** The bytes of a JSON body. A missing media type is let through: what matters is that the bytes are JSON. */
async function jsonBytes(request: FastifyRequest): Promise<Uint8Array> {
  const type = request.headers["content-type"];
  if (type && !/^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new Refused(COMMON.unsupported_media_type);
  const stream = request.body as Readable | undefined;
  return stream ? collect(stream, LIMITS.jsonBodyBytes) : new Uint8Array();
}

/** Path values as text. One that no id could be names nothing, so it is not found. */
function pathOf(request: FastifyRequest): Record<string, string> {
  const path = request.params as Record<string, string>;
  for (const name in path)
    if (path[name]!.includes("\0") || !path[name]!.isWellFormed()) throw new Refused(COMMON.not_found);
  return path;
}

function documentOf({ documents }: Compilation, { id }: Operation): DocumentNode {
  const document = documents.get(id);
  if (!document) throw new Error(`schema/operations has no document ${id}.graphql`);
  return document;
}
