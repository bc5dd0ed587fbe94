import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ExecutionResult, GraphQLError, getOperationAST } from "graphql";
import type { Actor } from "../infra/kernel/actor.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { onceClosed } from "../infra/net/once-closed.ts";
import { nextTurnIfBusy } from "./fairness.ts";
import { formatted } from "./format.ts";
import type { Gateway } from "./gateway.ts";
import { GATEWAY, requestRefusal } from "./refusals.ts";
import type { Operation, Variables } from "./request.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";
import { isStream } from "./stream.ts";

/** A comment now and then: proxies close what seems dead, and a reader that has gone is found out. */
const KEEP_ALIVE_MS = 12_000;

type ActorOf = (request: FastifyRequest) => Promise<Actor | null>;

/**
 * One operation per HTTP answer, as server-sent events (the protocol of graphql-sse with distinct connections).
 * Written here because the package's server queues without bound for a reader that is slow.
 */
export function serveSse(scope: FastifyInstance, gateway: Gateway, bodyLimit: number, actorOf: ActorOf): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const gone = new AbortController();
    onceClosed(reply.raw, () => gone.abort());
    let operation: Operation;
    try {
      const actor = await actorOf(request);
      operation = await operationOf(gateway, request, actor, gone.signal);
      holdStream(gateway, actor, request, reply.raw);
    } catch (error) {
      return refuse(reply, error);
    }
    const answer =
      operation.definition.operation === "subscription"
        ? await gateway.operations.open(operation)
        : await gateway.operations.run(operation);
    if (gone.signal.aborted) return isStream(answer) ? void answer.return() : undefined;
    reply.hijack();
    writeHead(reply);
    const response = reply.raw;
    const keepAlive = setInterval(() => response.write(":\n\n"), KEEP_ALIVE_MS);
    try {
      if (isStream(answer)) for await (const result of answer) await write(response, "next", formatted(result));
      else await write(response, "next", formatted(answer));
      if (!gone.signal.aborted) await write(response, "complete");
    } finally {
      clearInterval(keepAlive);
      response.end();
    }
  };
  scope.route({ method: ["GET", "POST"], url: "/graphql/stream", bodyLimit, handler });
}

/** Counts the stream until its connection carries it no more: a reader may be slow to take the last of it, too. */
function holdStream(
  { streams }: Gateway,
  actor: Actor | null,
  { graphqlBytes }: FastifyRequest,
  response: ServerResponse,
): void {
  const stream = actor
    ? streams.open("events", actor.tenantId)
    : streams.openWithoutKey("events", () => response.destroy());
  onceClosed(response, () => stream.close());
  onceClosed(response, stream.begin(graphqlBytes));
}

async function operationOf(
  gateway: Gateway,
  request: FastifyRequest,
  actor: Actor | null,
  signal: AbortSignal,
): Promise<Operation> {
  const { query, extensions, operationName, variables } =
    request.method === "GET" ? fromSearch(request) : fromBody(request);
  const known = gateway.persisted.resolve({ query, extensions });
  if (!known.document || known.problems.length > 0) throw known.problems;
  const definition = getOperationAST(known.document, operationName);
  if (!definition)
    throw requestRefusal(
      new Refused(COMMON.invalid_request, { message: "Say which operation of the document is to run." }),
    );
  if (request.method === "GET" && definition.operation === "mutation")
    throw requestRefusal(new Refused(GATEWAY.mutation_needs_post));
  const name = definition.name?.value ?? null;
  const operation: Operation = {
    document: known.document,
    definition,
    name,
    variables,
    actor,
    requestId: request.id,
    signal,
    transport: "sse",
  };
  await gateway.operations.admit(operation);
  return operation;
}

interface Parameters {
  query: unknown;
  extensions: unknown;
  operationName: string | null;
  variables: Variables;
}

function fromBody(request: FastifyRequest): Parameters {
  const body = request.body as Record<string, unknown> | undefined;
  if (!body) throw new Refused(COMMON.unsupported_media_type);
  return parameters(body);
}

function fromSearch(request: FastifyRequest): Parameters {
  const search = request.query as Record<string, unknown>;
  return parameters({ ...search, variables: parsed(search.variables), extensions: parsed(search.extensions) });
}

function parsed(text: unknown): unknown {
  if (typeof text !== "string" || text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused(COMMON.invalid_json, { message: "variables and extensions are JSON objects." });
  }
}

function parameters({ query, extensions, operationName, variables = {} }: Record<string, unknown>): Parameters {
  if (variables !== null && (typeof variables !== "object" || Array.isArray(variables)))
    throw new Refused(COMMON.invalid_request, { field: "/variables", message: "variables is an object." });
  return {
    query,
    extensions,
    operationName: typeof operationName === "string" ? operationName : null,
    variables: (variables ?? {}) as Variables,
  };
}

function refuse(reply: FastifyReply, error: unknown) {
  const problems = Array.isArray(error)
    ? (error as GraphQLError[])
    : [error instanceof Refused ? requestRefusal(error) : error];
  const first = problems[0];
  if (!(first instanceof GraphQLError)) throw error;
  const { status = 400, headers = [] } = (first.extensions.http ?? {}) as {
    status?: number;
    headers?: Iterable<[string, string]>;
  };
  return reply
    .code(status)
    .headers(Object.fromEntries(headers))
    .send(formatted({ errors: problems as GraphQLError[] }));
}

function writeHead(reply: FastifyReply): void {
  const headers = Object.fromEntries(Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined));
  reply.raw.writeHead(200, {
    ...(headers as Record<string, string>),
    [REQUEST_ID_HEADER]: reply.request.id,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  });
  reply.raw.write(":\n\n"); // some browsers take the headers for sent only with a first byte
}

/** Writes one event, and waits while the reader is behind: a slow reader slows its own stream and nothing else. */
async function write(
  response: ServerResponse,
  event: "next" | "complete",
  data?: ExecutionResult | object,
): Promise<void> {
  await nextTurnIfBusy();
  if (response.destroyed) return;
  if (response.write(`event: ${event}\ndata: ${data === undefined ? "" : JSON.stringify(data)}\n\n`)) return;
  const waiting = new AbortController();
  const { signal } = waiting;
  try {
    await Promise.race([once(response, "drain", { signal }), once(response, "close", { signal })]);
  } finally {
    waiting.abort();
  }
}
