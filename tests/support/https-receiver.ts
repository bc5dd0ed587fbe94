import { createHmac } from "node:crypto";
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Authority } from "./authority.ts";

/** One request as it arrived. */
export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A customer's HTTPS server on this machine. */
export interface Receiver {
  /** https://localhost:port, without a path. */
  readonly origin: string;
  readonly port: number;
  /** Requests that arrived completely, in order. */
  readonly received: Received[];
  /** How many requests are open now, and how many were at most. */
  readonly open: { now: number; most: number };
  /** What it does from now on. */
  answer(with_: Answering): void;
  close(): Promise<void>;
}

export type Answering = (received: Received, response: ServerResponse) => void;

/** Answers with a status alone. */
export const status =
  (code: number, headers: Record<string, string> = {}): Answering =>
  (_, response) =>
    void response.writeHead(code, headers).end();

/** Never answers. */
export const hang: Answering = () => {};

/** Starts a receiver whose certificate is for `hosts`. */
export async function httpsReceiver(authority: Authority, hosts: readonly string[] = ["localhost"]): Promise<Receiver> {
  const { certPem, keyPem } = await authority.issue(hosts);
  let answering: Answering = status(204);
  const received: Received[] = [];
  const open = { now: 0, most: 0 };
  const server = createServer({ cert: certPem, key: keyPem }, async (request, response) => {
    open.most = Math.max(open.most, ++open.now);
    response.on("close", () => open.now--);
    response.on("error", () => {}); // the platform hangs up on some of these on purpose
    const body = await read(request);
    if (body === null) return;
    const one = { path: request.url ?? "", headers: request.headers, body };
    received.push(one);
    answering(one, response);
  }).listen(0, "localhost");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    ...{ origin: `https://localhost:${port}`, port, received, open },
    answer: (with_) => {
      answering = with_;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The whole body; null when the sender hung up before its end. */
async function read(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString("utf8");
  } catch {
    return null;
  }
}

/** Whether a request is signed by the secret, as a receiver would look. */
export function isSigned({ headers, body }: Received, secret: string): boolean {
  const expected = createHmac("sha256", secret).update(`${headers["x-nodus-timestamp"]}.${body}`).digest("hex");
  return headers["x-nodus-signature"] === expected;
}
