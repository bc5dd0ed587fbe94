import { createClient } from "graphql-ws";
import WebSocket from "ws";

/** The platform said no, or could not be reached; the message is for the person at the terminal. */
export class ClientError extends Error {
  override readonly name: string = "ClientError";
}

/** Nobody answers at the platform's address: it may be restarting. */
export class PlatformLost extends ClientError {
  override readonly name = "PlatformLost";
}

interface GraphAnswer<T> {
  data?: T | null;
  errors?: {
    message: string;
    extensions?: { code?: string; fix?: string; field?: string; detail?: Record<string, unknown> };
  }[];
}

/** A thin client of the graph. */
export interface Client {
  query<T>(document: string, variables?: Record<string, unknown>): Promise<T>;
  /** Items of a subscription until it completes; resumes by itself is the caller's business. */
  subscribe<T>(document: string, variables: Record<string, unknown>): AsyncIterableIterator<T>;
  close(): Promise<void>;
}

/** A client of the platform at `baseUrl`, with an API key. */
export function connect(baseUrl: string, apiKey: string): Client {
  const sockets = createClient({
    url: `${baseUrl.replace(/^http/, "ws")}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { Authorization: `Bearer ${apiKey}` },
    lazy: true,
    retryAttempts: 0,
  });
  return {
    query: async <T>(document: string, variables: Record<string, unknown> = {}) => {
      const url = `${baseUrl}/graphql`;
      const response = await post(url, apiKey, { query: document, variables });
      // Whatever else listens there may answer with anything.
      const answer = (await response.json().catch(() => ({}))) as GraphAnswer<T>;
      if (answer.errors?.length) throw new ClientError(answer.errors.map(sentence).join("\n"));
      if (!answer.data)
        throw new ClientError(
          `${url} answered ${response.status} and is no platform's. NODUS_BASE_URL is its origin, such as http://127.0.0.1:4000.`,
        );
      return answer.data;
    },
    subscribe: <T>(document: string, variables: Record<string, unknown>) =>
      items<T>(sockets.iterate({ query: document, variables })),
    close: async () => {
      await sockets.dispose();
    },
  };
}

async function post(url: string, apiKey: string, body: unknown): Promise<Response> {
  try {
    return await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause?.code ?? (error as Error).message;
    throw new PlatformLost(
      `No platform answers at ${url} (${cause}). Start one with \`npm start\`, or set NODUS_BASE_URL.`,
    );
  }
}

function sentence(error: NonNullable<GraphAnswer<unknown>["errors"]>[number]): string {
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
      if (answer.errors?.length) throw new ClientError(answer.errors.map(sentence).join("\n"));
      if (answer.data) yield answer.data;
    }
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

/** What the platform refused, told apart from a connection that broke: only the latter is worth trying again. */
function refusalOf(error: unknown): ClientError | null {
  if (Array.isArray(error))
    return new ClientError((error as NonNullable<GraphAnswer<unknown>["errors"]>).map(sentence).join("\n"));
  const { code, reason } = (error ?? {}) as { code?: number; reason?: string };
  return code !== undefined && code >= 4400 && code < 4500
    ? new ClientError(reason || `The stream was refused (${code}).`)
    : null;
}
