import { type ClientOptions, createClient } from "graphql-ws";
import WebSocket from "ws";
import { tlsFailure } from "../infra/net/tls-failure.ts";

/** The platform said no, or could not be reached; the message is for the person at the terminal. */
export class ClientError extends Error {
  override readonly name: string = "ClientError";
}

/** The platform, or a part of it that is needed, does not answer just now: it may be restarting, and asking again may help. */
export class PlatformLost extends ClientError {
  override readonly name = "PlatformLost";
  /** What was asked never got there, so nothing came of it; otherwise that is not known. */
  readonly isUnsent: boolean;

  constructor(message: string, { isUnsent = false } = {}) {
    super(message);
    this.isUnsent = isUnsent;
  }
}

interface GraphAnswer<T> {
  data?: T | null;
  errors?: {
    message: string;
    extensions?: { code?: string; status?: number; fix?: string; field?: string; detail?: Record<string, unknown> };
  }[];
}

type GraphErrors = NonNullable<GraphAnswer<unknown>["errors"]>;

/** What says of itself that the same request may be answered later; 500 is a fault, which repeating does not mend. */
const TRANSIENT_STATUS: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
/** Close codes from 4400 on that speak of the moment and not of the request: no greeting in time, too many streams. */
const TRANSIENT_CLOSE: ReadonlySet<number> = new Set([4408, 4429]);
/** What a request fails with that never left: there was no connection, or nowhere that one could lead to. */
const UNSENT: ReadonlySet<string> = new Set([
  "bad port",
  "unknown scheme",
  "ERR_INVALID_URL",
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** How long things may take before the platform counts as lost, in milliseconds. */
export interface Waits {
  /** An answer to a query or a mutation; the platform itself gives up sooner. */
  answerMs: number;
  /** Between two questions to a silent socket whether anybody is there. */
  pingEveryMs: number;
  /** Opening a socket, its greeting, and each answer to such a question. */
  pongMs: number;
}

const WAITS: Waits = { answerMs: 60_000, pingEveryMs: 15_000, pongMs: 10_000 };

/** A thin client of the graph. Throws `PlatformLost` where asking again may help, and `ClientError` where it was refused. */
export interface Client {
  query<T>(document: string, variables?: Record<string, unknown>): Promise<T>;
  /** Items of a subscription until it completes. To resume after a loss is the caller's business, who has the cursor. */
  subscribe<T>(document: string, variables: Record<string, unknown>): AsyncIterableIterator<T>;
  close(): Promise<void>;
}

/** A client of the platform at `baseUrl`, with an API key. */
export function connect(baseUrl: string, apiKey: string, waits: Waits = WAITS): Client {
  const sockets = createClient({
    url: `${baseUrl.replace(/^http/, "ws")}/graphql`,
    webSocketImpl: openedWithin(waits.pongMs),
    connectionParams: { Authorization: `Bearer ${apiKey}` },
    lazy: true,
    retryAttempts: 0,
    keepAlive: waits.pingEveryMs,
    connectionAckWaitTimeout: waits.pongMs,
    on: closeWhenSilent(waits.pongMs),
  });
  return {
    query: (document, variables = {}) =>
      ask(`${baseUrl}/graphql`, apiKey, { query: document, variables }, AbortSignal.timeout(waits.answerMs)),
    subscribe: <T>(document: string, variables: Record<string, unknown>) =>
      items<T>(sockets.iterate({ query: document, variables })),
    close: async () => {
      try {
        await sockets.dispose();
      } catch {
        // A connection that was just being made has failed, so there is none to be closed: all that was asked is over.
      }
    },
  };
}

/** A socket that fails when it is not open after so many milliseconds: something may take the connection and say nothing. */
function openedWithin(handshakeTimeout: number): typeof WebSocket {
  return class extends WebSocket {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols, { handshakeTimeout });
    }
  } as typeof WebSocket;
}

/** Ends a socket whose other side has gone without a word, as a machine does that loses power. */
function closeWhenSilent(pongMs: number): ClientOptions["on"] {
  let socket: WebSocket | null = null;
  let deadline: NodeJS.Timeout | undefined;
  return {
    connected: (opened) => {
      socket = opened as WebSocket;
    },
    ping: (received) => {
      if (!received) deadline = setTimeout(() => socket?.terminate(), pongMs).unref();
    },
    pong: (received) => {
      if (received) clearTimeout(deadline);
    },
    closed: () => clearTimeout(deadline),
  };
}

async function ask<T>(url: string, apiKey: string, body: unknown, signal: AbortSignal): Promise<T> {
  const response = await post(url, apiKey, body, signal);
  const { data, errors } = await answerOf<T>(response, url);
  if (errors?.length) throw errorOf(errors);
  if (data) return data;
  if (TRANSIENT_STATUS.has(response.status))
    throw new PlatformLost(`${url} answered ${response.status}: the platform behind it does not answer just now.`);
  throw new ClientError(
    `${url} answered ${response.status} and is no platform's. NODUS_BASE_URL is its origin, such as http://127.0.0.1:4000.`,
  );
}

/** Whatever else listens there may answer with anything, which is then an answer without data. */
async function answerOf<T>(response: Response, url: string): Promise<GraphAnswer<T>> {
  const text = await response.text().catch((error: Error) => {
    throw new PlatformLost(`The answer of ${url} broke off (${error.message}).`);
  });
  try {
    return (JSON.parse(text) ?? {}) as GraphAnswer<T>;
  } catch {
    return {};
  }
}

async function post(url: string, apiKey: string, body: unknown, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    const { code, message } = ((error as Error).cause ?? error) as { code?: string; message: string };
    const cause = typeof code === "string" ? code : message;
    throw new PlatformLost(
      `No platform answers at ${url} (${cause}). Start one with \`npm start\`, or set NODUS_BASE_URL.`,
      { isUnsent: UNSENT.has(cause) || tlsFailure(cause) !== null },
    );
  }
}

/** The graph's errors as one: a loss when all of them are. */
function errorOf(errors: GraphErrors): ClientError {
  const message = [...new Set(errors.map(sentence))].join("\n");
  const lost = errors.every(({ extensions }) => TRANSIENT_STATUS.has(extensions?.status ?? 0));
  return lost ? new PlatformLost(message) : new ClientError(message);
}

function sentence(error: GraphErrors[number]): string {
  const { field, fix, detail = {} } = error.extensions ?? {};
  const figures = Object.entries(detail).map(([name, value]) => `\n  ${name} ${String(value)}`);
  return `${field ? `${field}: ` : ""}${error.message}${fix ? ` ${fix}` : ""}${figures.join("")}`;
}

function items<T>(results: AsyncIterableIterator<unknown>): AsyncIterableIterator<T> {
  const opened = open<T>(results);
  // A generator would end only with the next item, which may be long in coming.
  opened.return = async () => {
    await results.return?.();
    return { done: true, value: undefined };
  };
  return opened;
}

async function* open<T>(results: AsyncIterableIterator<unknown>): AsyncGenerator<T, undefined> {
  try {
    for await (const result of results) {
      const answer = result as GraphAnswer<T>;
      if (answer.errors?.length) throw errorOf(answer.errors);
      if (answer.data) yield answer.data;
    }
  } catch (error) {
    throw streamError(error);
  }
}

/** What ended a stream: a refusal, or a connection that broke, which is worth trying again. */
function streamError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  if (Array.isArray(error)) return errorOf(error as GraphErrors);
  const { code, reason, message } = (error ?? {}) as { code?: number; reason?: string; message?: string };
  if (code !== undefined && code >= 4400 && code < 4500 && !TRANSIENT_CLOSE.has(code))
    return new ClientError(reason || `The stream was refused (${code}).`);
  return new PlatformLost(`The connection to the platform broke (${reason || message || `code ${code}`}).`);
}
