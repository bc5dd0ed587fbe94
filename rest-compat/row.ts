import type { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { BytesPorts, Caller } from "./ports.ts";
import type { CheckDepth } from "./wire/shape.ts";

/** A request after authentication and coercion, in the wire's own spelling. */
export interface WireRequest {
  readonly path: Readonly<Record<string, string>>;
  /** Coerced; defaults filled in. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The checked body; null where the operation documents none. */
  readonly body: Readonly<Record<string, unknown>> | null;
  /** Null where the operation takes no key. */
  readonly idempotencyKey: string | null;
}

/** What a document answers under the alias `reply`. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is the document's, which the contract tests check
export type Reply = any;

/** A documented operation that is one GraphQL document of the same name. */
export interface GraphRow {
  readonly kind: "graph";
  /** Wire arguments by snake_case variable name; without it path, query, `input` (the body) and `idempotency_key`. */
  readonly take?: (request: WireRequest) => Record<string, unknown>;
  /**
   * The wire body from the reply; without it the reply itself. A null reply is a 404 before this is asked.
   * `data` is the whole answer, for documents that ask for more than the reply.
   */
  readonly give?: (reply: Reply, request: WireRequest, data: Reply) => unknown;
  /** Needed only where the contract documents several successes, or none. */
  readonly status?: number;
  /** Without it `shape`. */
  readonly check?: CheckDepth;
  /** Refuses what this release does not take, before the body's shape is judged: it gets the body as it came. */
  readonly refuseFirst?: (body: Readonly<Record<string, unknown>>) => void;
  /** Pointers in whose reach repeated JSON members are refused; elsewhere the last one counts. */
  readonly refuseRepeats?: readonly string[];
}

/** One exchange that a row conducts by itself. The request's body is untouched. */
export interface BytesExchange {
  readonly caller: Caller;
  readonly wire: WireRequest;
  readonly contentType: string | undefined;
  readonly content: Readable;
  /** Reads `content` as the operation's JSON body and checks its shape. */
  readBody(): Promise<Readonly<Record<string, unknown>>>;
  /** A HEAD request: headers without a stream. */
  readonly headOnly: boolean;
  readonly reply: FastifyReply;
  readonly ports: BytesPorts;
  /** Runs the operation's document and sends its reply, as a graph row would; with the first documented success unless told. */
  answerWith(variables: Readonly<Record<string, unknown>>, status?: number): Promise<FastifyReply>;
}

/** A documented operation whose request or answer is a stream, or is waited for; it answers by itself. */
export interface BytesRow {
  readonly kind: "bytes";
  readonly serve: (exchange: BytesExchange) => Promise<FastifyReply>;
  /** Whether a document of the operation's name makes the wire body from the outcome. */
  readonly document?: true;
}

export type Row = GraphRow | BytesRow;

/** A domain's rows by operationId. */
export type Table = Readonly<Record<string, Row>>;
