import { type ExecutionResult, GraphQLError, type GraphQLFormattedError } from "graphql";
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, MessageType, parseMessage, stringifyMessage } from "graphql-ws";
import { WebSocket } from "ws";
import type { Stream } from "../stream.ts";

/** Results that may wait for the reader before the socket is no longer read. */
const HIGH_WATER = 16;
/** How often a stream's socket is tried. A subgraph that has not answered by the next time is taken for gone. */
export const STREAM_PING_MS = 10_000;

/** A stream ended without the subgraph's having ended it: its process or the way there is gone. */
export class StreamLost extends Error {}

type Body = { query: string; operationName?: string; variables: Readonly<Record<string, unknown>> };

/**
 * One subscription on a socket of its own: a slow reader stops this socket's reading and nothing else.
 * Rejects when the subgraph can't be reached; what it refuses is the stream's only result.
 */
export function openSocketStream(
  url: URL,
  params: Record<string, string>,
  body: Body,
  pingMs: number,
  signal?: AbortSignal,
): Promise<Stream<ExecutionResult>> {
  return new SocketStream(url.href.replace(/^http/, "ws"), params, body, pingMs).opened(signal);
}

class SocketStream {
  readonly #socket: WebSocket;
  readonly #waiting: ExecutionResult[] = [];
  #failure: Error | null = null;
  #over = false;
  #acknowledged = false;
  #answered = true;
  readonly #pinging: NodeJS.Timeout;
  /** Called whenever something has changed. */
  #changed: () => void = () => {};

  constructor(url: string, params: Record<string, string>, body: Body, pingMs: number) {
    this.#socket = new WebSocket(url, GRAPHQL_TRANSPORT_WS_PROTOCOL, { skipUTF8Validation: true });
    this.#socket.on("open", () => this.#send({ type: MessageType.ConnectionInit, payload: params }));
    this.#socket.on("message", (data) => this.#take(String(data), body));
    this.#socket.on("pong", () => {
      this.#answered = true;
    });
    this.#pinging = setInterval(() => this.#keepAlive(), pingMs).unref();
    this.#socket.on("error", (cause) => this.#end(new StreamLost("the way to the subgraph broke", { cause })));
    this.#socket.on("close", (code, reason) =>
      this.#end(new StreamLost(`the subgraph closed the stream: ${code} ${String(reason)}`)),
    );
  }

  /** Resolves with the stream as soon as the subgraph has let us in. */
  async opened(signal?: AbortSignal): Promise<Stream<ExecutionResult>> {
    const giveUp = () => this.#end(new Error("given up while opening"));
    signal?.addEventListener("abort", giveUp, { once: true });
    while (!this.#over && !this.#acknowledged) await this.#change();
    signal?.removeEventListener("abort", giveUp);
    if (!this.#acknowledged) throw this.#failure ?? new Error("the subgraph closed the stream before it began");
    return this.#stream();
  }

  #stream(): Stream<ExecutionResult> {
    const close = async (): Promise<IteratorResult<ExecutionResult>> => {
      this.#waiting.length = 0;
      this.#end(null);
      return { done: true, value: undefined };
    };
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: async () => {
        while (this.#waiting.length === 0 && !this.#over) await this.#change();
        const value = this.#waiting.shift();
        if (this.#waiting.length < HIGH_WATER && this.#socket.isPaused) this.#socket.resume();
        if (value) return { done: false, value };
        if (this.#failure) throw this.#failure;
        return { done: true, value: undefined };
      },
      return: close,
      throw: async (error) => {
        await close();
        throw error;
      },
    };
  }

  #take(text: string, body: Body): void {
    if (this.#over) return;
    const message = parseMessage(text);
    if (message.type === MessageType.ConnectionAck) {
      this.#acknowledged = true;
      this.#send({ type: MessageType.Subscribe, id: "1", payload: { ...body, variables: { ...body.variables } } });
    } else if (message.type === MessageType.Next) {
      this.#waiting.push(message.payload as ExecutionResult);
      if (this.#waiting.length >= HIGH_WATER) this.#socket.pause();
    } else if (message.type === MessageType.Error) {
      this.#waiting.push({ errors: (message.payload as readonly GraphQLFormattedError[]).map(asError) });
      this.#end(null);
    } else if (message.type === MessageType.Complete) this.#end(null);
    this.#changed();
  }

  /** A machine that vanished closes nothing. While the reader is behind, nothing is read: then only we show that we live. */
  #keepAlive(): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (this.#socket.isPaused) {
      this.#answered = true;
      this.#socket.pong();
    } else if (this.#answered) {
      this.#answered = false;
      this.#socket.ping();
    } else {
      this.#end(new StreamLost("the subgraph has fallen silent"));
      this.#socket.terminate();
    }
  }

  #end(failure: Error | null): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#pinging);
    this.#failure = failure;
    // A paused socket would not see the peer's close; one that never connected has nothing to resume, and throws.
    if (this.#socket.isPaused) this.#socket.resume();
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
    else this.#socket.close(1000);
    this.#changed();
  }

  #send(message: Parameters<typeof stringifyMessage>[0]): void {
    this.#socket.send(stringifyMessage(message), (error) => error && this.#end(error));
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }
}

function asError(error: GraphQLFormattedError): GraphQLError {
  return new GraphQLError(error.message, { path: error.path, extensions: error.extensions });
}
