import type { FastifyContextConfig, FastifyInstance, FastifyRequest, HTTPMethods } from "fastify";
import type { Actor } from "../infra/kernel/actor.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { cutSlowBody } from "../infra/net/slow-body.ts";
import { answerError } from "./answer.ts";
import { type Envelope, METHODS, type Operation } from "./contract.ts";
import { type Extension, extensionHandler } from "./extension.ts";
import { type Compilation, type Handler, handlerOf } from "./handlers.ts";
import type { Table } from "./row.ts";
import { requireServerOptions } from "./server-options.ts";
import { BodyChecks } from "./wire/shape.ts";

/** What the REST face is built from. */
export interface RestOptions extends Omit<Compilation, "checks"> {
  readonly table: Table;
  /** What real clients call beyond the contract. */
  readonly extensions: readonly Extension[];
  /** Where a person reads about an error code; an absolute address. */
  readonly helpUrl: (code: string) => string;
  /** How long a client may take to send a body that is no file; a default holds unless given. */
  readonly bodyMs?: number;
}

type RouteConfig = Pick<FastifyContextConfig, "envelope" | "open" | "takesFile">;

declare module "fastify" {
  interface FastifyRequest {
    /** The caller of a REST route; null before authentication and on open routes. */
    restActor: Actor | null;
  }
  interface FastifyContextConfig {
    /** How errors look on this route; general unless said. */
    envelope?: Envelope;
    /** Answers without credentials. */
    open?: boolean;
    /** Its row reads the body for as long as the client sends. */
    takesFile?: boolean;
    /** Read by the server's CORS plugin: whether it answers OPTIONS itself. */
    cors?: { preflight: boolean };
  }
}

/**
 * The REST face as a Fastify plugin: one route for each documented operation, a 405 for each other method of a
 * documented path, a 404 for the rest of `/v1`. It replaces the body parsers of its own scope. The server around it
 * must be made with REST_SERVER_OPTIONS.
 */
export async function restCompat(app: FastifyInstance, options: RestOptions): Promise<void> {
  const { contract, table, extensions } = options;
  requireServerOptions(app.initialConfig);
  prepare(app, options);
  const compilation: Compilation = { ...options, checks: new BodyChecks(contract.document) };
  const known = new KnownPaths();
  const add = (method: string, path: string, config: RouteConfig, handler: Handler) => {
    known.add(routeUrl(path), method);
    app.route({
      method: method.toUpperCase() as HTTPMethods,
      url: routeUrl(path),
      exposeHeadRoute: false,
      // A documented OPTIONS is an operation; answered as a browser's preflight it would never be reached.
      config: method === "options" ? { ...config, cors: { preflight: false } } : config,
      handler,
    });
  };
  for (const operation of contract.operations.values()) {
    const { id, path, envelope } = operation;
    const handler = handlerOf(compilation, operation, table[id]);
    const config = { envelope, takesFile: table[id]?.kind === "bytes" };
    for (const method of methodsOf(operation, contract.operations.values())) add(method, path, config, handler);
  }
  for (const extension of extensions) {
    const { methods, path, envelope, open } = extension;
    const handler = extensionHandler(compilation, extension);
    for (const method of methods) add(method, path, { envelope, open }, handler);
  }
  refuseTheRest(app, known);
}

/** A documented GET answers HEAD as well, unless HEAD is documented itself. */
function methodsOf(operation: Operation, all: Iterable<Operation>): string[] {
  const ownHead = [...all].some((other) => other.path === operation.path && other.method === "head");
  return operation.method === "get" && !ownHead ? ["get", "head"] : [operation.method];
}

/** Callers are known before a byte of a body is read; bodies stay streams until a row wants them. */
function prepare(app: FastifyInstance, { ports, helpUrl, bodyMs = LIMITS.requestBodyMs }: RestOptions): void {
  app.decorateRequest("restActor", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.addHook("onRequest", async (request, reply) => {
    reply.headers({ "X-Request-Id": request.id, "Cache-Control": "no-store" });
    if (!request.routeOptions.config.takesFile) cutSlowBody(request.raw, reply.raw, bodyMs);
    if (request.routeOptions.config.open) return;
    request.restActor = await ports.authenticate(request.headers.authorization);
    if (!request.restActor) throw new Refused(COMMON.unauthorized);
  });
  // A file that was refused has been answered, and its sender may go on sending.
  app.addHook("onResponse", async (request, reply) => {
    if (request.routeOptions.config.takesFile) cutSlowBody(request.raw, reply.raw, bodyMs);
  });
  const envelopeOf = (request: FastifyRequest) => request.routeOptions.config.envelope ?? "general";
  app.setErrorHandler((error, request, reply) =>
    answerError(error, request, reply, { envelope: envelopeOf(request), helpUrl }),
  );
}

/** The routes of one face by path, to know which methods each does not take. */
class KnownPaths {
  readonly #methods = new Map<string, string[]>();

  add(url: string, method: string): void {
    this.#methods.set(url, [...(this.#methods.get(url) ?? []), method]);
  }

  *entries(): Iterable<{ url: string; taken: string[]; others: string[] }> {
    for (const [url, taken] of this.#methods) yield { url, taken, others: METHODS.filter((m) => !taken.includes(m)) };
  }
}

function refuseTheRest(app: FastifyInstance, known: KnownPaths): void {
  for (const { url, taken, others } of known.entries()) {
    if (others.length === 0) continue;
    const allow = taken.map((method) => method.toUpperCase()).join(", ");
    const handler: Handler = async (_request, reply) => {
      reply.header("Allow", allow);
      throw new Refused(COMMON.method_not_allowed, { fix: `Use ${allow}.` });
    };
    app.route({ method: upper(others), url, exposeHeadRoute: false, config: { open: true }, handler });
  }
  const unknown: Handler = async () => {
    throw new Refused(COMMON.not_found, {
      message: "There is no such path.",
      fix: "See the README for the paths that are served.",
    });
  };
  for (const url of ["/v1", "/v1/*"])
    app.route({ method: upper(METHODS), url, exposeHeadRoute: false, config: { open: true }, handler: unknown });
}

const upper = (methods: readonly string[]): HTTPMethods[] => methods.map((method) => method.toUpperCase());

/** `/v1/pools/{id}` as the router spells it. The port proxy's last value is a path of its own, slashes included. */
function routeUrl(path: string): string {
  return path.replace("{path}", "*").replace(/\{([^}]+)\}/g, ":$1");
}
