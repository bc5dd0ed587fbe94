import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { MessageType, parseMessage, stringifyMessage } from "graphql-ws";
import { onTestFinished } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";

/** One operation on a socket, from the platform's side. */
export interface ScriptedStream {
  /** Its document. */
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** How often this document was subscribed to, this time included. */
  readonly time: number;
  next(data: unknown): void;
  refuse(code: string, status: number): void;
  complete(): void;
  /** Closes the socket with a code. */
  close(code: number): void;
  /** Breaks the connection without a word. */
  cut(): void;
}

/** What a platform does that goes wrong in a way that is written down. */
export interface Script {
  /** The answer's data; `null` breaks the connection in place of an answer. `time` counts the requests of this document. */
  answer(query: string, variables: Readonly<Record<string, unknown>>, time: number): unknown;
  stream?(stream: ScriptedStream): void;
}

/** Listens where a platform should and does what the script says, over real connections; gives its origin. */
export async function scriptedPlatform({ answer, stream }: Script): Promise<string> {
  const timesOf = counter();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { query, variables } = JSON.parse(Buffer.concat(chunks).toString());
    const data = answer(query, variables, timesOf(query));
    if (data === null) response.destroy();
    else response.end(JSON.stringify({ data }));
  });
  const sockets = new WebSocketServer({ server, handleProtocols: () => "graphql-transport-ws" });
  sockets.on("connection", (socket) => serve(socket, (opened) => stream?.({ ...opened, time: timesOf(opened.query) })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function serve(socket: WebSocket, open: (stream: Omit<ScriptedStream, "time">) => void): void {
  socket.on("message", (text) => {
    const message = parseMessage(String(text));
    if (message.type === MessageType.ConnectionInit)
      socket.send(stringifyMessage({ type: MessageType.ConnectionAck, payload: {} }));
    if (message.type === MessageType.Ping) socket.send(stringifyMessage({ type: MessageType.Pong, payload: {} }));
    if (message.type !== MessageType.Subscribe) return;
    const { id, payload } = message;
    open({
      query: payload.query,
      variables: payload.variables ?? {},
      next: (data) => socket.send(JSON.stringify({ id, type: MessageType.Next, payload: { data } })),
      refuse: (code, status) => {
        const errors = [{ message: `It said ${code}.`, extensions: { code, status } }];
        socket.send(JSON.stringify({ id, type: MessageType.Error, payload: errors }));
      },
      complete: () => socket.send(stringifyMessage({ id, type: MessageType.Complete })),
      close: (code) => socket.close(code, "because"),
      cut: () => socket.terminate(),
    });
  });
}

function counter(): (name: string) => number {
  const times = new Map<string, number>();
  return (name) => {
    times.set(name, (times.get(name) ?? 0) + 1);
    return times.get(name)!;
  };
}
