import { context, propagation } from "@opentelemetry/api";
import { type DocumentNode, type ExecutionResult, print } from "graphql";
import { Pool } from "undici";
import { SUBGRAPH_WIRE, subgraphUrl } from "../../infra/graphql/subgraph-wire.ts";
import { signActor } from "../../infra/kernel/actor.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { SubgraphExecutor, SubgraphRequest } from "../request.ts";
import { openSocketStream, STREAM_PING_MS } from "./websocket.ts";

export interface RemoteSubgraph {
  /** The subgraph's name in the supergraph. */
  name: string;
  /** Where its process is, such as `http://10.0.0.5:4101`. */
  url: string;
  /** The deployment's key, with which the caller's identity is signed. */
  signingKey: Uint8Array;
  clock: Clock;
  /** How often the socket of a stream is tried; a subgraph that does not answer until the next time is gone. */
  pingMs?: number;
}

/** Sockets at once to one subgraph, for queries and mutations. */
const CONNECTIONS = 64;

/** A subgraph in another process: queries and mutations by HTTP, each subscription on a socket of its own. */
export function remote(subgraph: RemoteSubgraph): SubgraphExecutor {
  const url = subgraphUrl(subgraph.url, subgraph.name);
  const pool = new Pool(url.origin, { connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 });
  return {
    name: subgraph.name,
    execute(request) {
      const headers = headersOf(subgraph, request);
      const body = {
        query: textOf(request.document),
        operationName: request.operationName,
        variables: request.variables,
      };
      return request.operationType === "subscription"
        ? openSocketStream(url, headers, body, subgraph.pingMs ?? STREAM_PING_MS, request.signal)
        : post(pool, url.pathname, headers, body, request.signal);
    },
    close: () => pool.destroy(),
  };
}

async function post(
  pool: Pool,
  path: string,
  headers: Record<string, string>,
  body: object,
  signal: AbortSignal | undefined,
): Promise<ExecutionResult> {
  const response = await pool.request({
    path,
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const text = await response.body.text();
  if (!String(response.headers["content-type"]).includes("json"))
    throw new Error(`HTTP ${response.statusCode} without JSON`);
  const result = JSON.parse(text) as ExecutionResult;
  if (result.data === undefined && !result.errors)
    throw new Error(`HTTP ${response.statusCode} without a GraphQL answer`);
  return result;
}

function headersOf(
  { signingKey, clock }: RemoteSubgraph,
  { actor, requestId }: SubgraphRequest,
): Record<string, string> {
  if (!actor) throw new Refused(COMMON.unauthorized); // nothing to vouch for: data is for callers with a key
  const headers: Record<string, string> = {
    [SUBGRAPH_WIRE.actor]: signActor(actor, signingKey, clock.now()),
    [SUBGRAPH_WIRE.requestId]: requestId,
  };
  propagation.inject(context.active(), headers);
  return headers;
}

const texts = new WeakMap<DocumentNode, string>();

function textOf(document: DocumentNode): string {
  const known = texts.get(document);
  if (known !== undefined) return known;
  const text = print(document);
  texts.set(document, text);
  return text;
}
