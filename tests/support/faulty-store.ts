import http from "node:http";
import type { AddressInfo } from "node:net";

/** What an object store does to requests: takes them, has no space for bytes, refuses all, or answers none. */
export type StoreMood = "well" | "full" | "refusing" | "hanging";

/** An address in front of an object store that behaves as it is told. */
export interface FaultyStore {
  readonly endpoint: string;
  /** Requests that were left without an answer are cut off. */
  turn(mood: StoreMood): void;
  /** Results that it did not take since it last turned. */
  readonly refusedOutputs: number;
  close(): Promise<void>;
}

/** Passes requests on as they are, so that their signatures hold: these name the address that the client knows. */
export async function faultyStore(target: string): Promise<FaultyStore> {
  let mood: StoreMood = "well";
  const unanswered = new Set<http.ServerResponse>();
  let refusedOutputs = 0;
  const server = http.createServer((request, response) => {
    if (mood !== "well" && request.method === "PUT" && request.url!.includes("/results/")) refusedOutputs++;
    if (mood === "hanging") {
      request.resume();
      return void unanswered.add(response);
    }
    if (mood === "refusing" || (mood === "full" && request.method === "PUT")) return refuse(request, response, mood);
    const { method, headers, url } = request;
    const onward = http.request(new URL(url!, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get refusedOutputs() {
      return refusedOutputs;
    },
    turn: (next) => {
      mood = next;
      refusedOutputs = 0;
      for (const response of unanswered) response.destroy();
      unanswered.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(request: http.IncomingMessage, response: http.ServerResponse, mood: "full" | "refusing"): void {
  const [status, code] = mood === "full" ? [507, "InsufficientStorage"] : [403, "AccessDenied"];
  request.resume().once("end", () => response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`));
}
