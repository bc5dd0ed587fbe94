import net from "node:net";
import { within } from "./workloads.ts";

/** Sends bytes as they are on a connection of their own; the status of the answer, or null when it was closed without one. */
export function rawStatus(origin: string, request: string | Buffer): Promise<number | null> {
  const { hostname, port } = new URL(origin);
  const asked = new Promise<number | null>((resolve) => {
    const socket = net.connect(Number(port), hostname);
    let answer = "";
    const settle = () => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(answer);
      socket.destroy();
      resolve(status ? Number(status[1]) : null);
    };
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
      if (answer.includes("\r\n\r\n")) settle();
    });
    socket.on("error", settle).on("end", settle).on("close", settle);
    socket.write(request);
  });
  return within(asked, 20_000, "an answer to a raw request");
}

/** A request's head and body as they go over the line; nothing in it is checked or escaped. */
export function rawRequest(line: string, headers: Readonly<Record<string, string>>, body = ""): string {
  const all = { host: "localhost", connection: "close", "content-length": String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
