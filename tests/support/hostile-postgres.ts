import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { testAuthority } from "./authority.ts";

/** Where in a conversation a database turns hostile: what it then does takes the place of its answer. */
export type Phase = "startup" | "loggedIn" | "statement" | "describe" | "copyOut" | "copyIn" | "rowsIn";

/** What it does then: `send` bytes, or nothing at all. */
export interface Attack {
  at: Phase;
  act(client: TLSSocket): void;
}

export interface HostilePostgres {
  readonly port: number;
  readonly caPem: string;
  /** What a secret of a connection to it holds. */
  readonly secret: string;
  /** What it does to everybody who comes from now on. */
  attack: Attack | null;
  /** Connections that are open. */
  open(): number;
  close(): Promise<void>;
}

/** A message of the protocol. */
export function message(kind: string, body: Buffer | string = ""): Buffer {
  const bytes = Buffer.from(body as string, "latin1");
  const header = Buffer.alloc(5);
  header.write(kind, "latin1");
  header.writeUInt32BE(bytes.length + 4, 1);
  return Buffer.concat([header, bytes]);
}

const READY = message("Z", "I");
const LOGGED_IN = Buffer.concat([message("R", "\0\0\0\0"), READY]);
const INT4 = 23;

/** The description of one column. */
export function column(name: string, typeId = INT4): Buffer {
  const rest = Buffer.alloc(18);
  rest.writeUInt32BE(typeId, 6);
  return message("T", Buffer.concat([Buffer.from([0, 1]), Buffer.from(`${name}\0`), rest]));
}

/** A row of one value. */
export function row(value: string): Buffer {
  const lengths = Buffer.from([0, 1, 0, 0, 0, value.length]);
  return message("D", Buffer.concat([lengths, Buffer.from(value)]));
}

/** The end of a statement, after which it is ready for the next. */
export const done = (tag: string) => Buffer.concat([message("C", `${tag}\0`), READY]);

/**
 * A server that speaks PostgreSQL over TLS: it lets everybody in, has one row of one column for every query, takes every
 * copy, and turns hostile where it is told to.
 */
export async function startHostilePostgres(): Promise<HostilePostgres> {
  const authority = await testAuthority();
  const { certPem, keyPem } = await authority.issue(["localhost", "127.0.0.1"]);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // the client leaves in the middle
    socket.once("data", () => {
      socket.write("S");
      const tls = new TLSSocket(socket, { isServer: true, cert: certPem, key: keyPem });
      tls.on("error", () => {}); // likewise
      converse(tls, hostile);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const hostile: HostilePostgres = {
    ...{ port, caPem: authority.caPem, attack: null },
    secret: JSON.stringify({ postgres_url: `postgres://u:password@127.0.0.1:${port}/d`, ca_cert: authority.caPem }),
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return hostile;
}

function converse(client: TLSSocket, hostile: Pick<HostilePostgres, "attack">): void {
  let turned = false;
  const say = (at: Phase, honest: Buffer) => {
    if (turned) return;
    const { attack } = hostile;
    turned = attack?.at === at;
    if (turned) attack?.act(client);
    else client.write(honest);
  };
  let heard = Buffer.alloc(0);
  let started = false;
  const statement = { bound: false };
  client.on("data", (chunk: Buffer) => {
    heard = Buffer.concat([heard, chunk]);
    for (;;) {
      const headerBytes = started ? 5 : 4;
      if (heard.length < headerBytes) return;
      const bytes = heard.readUInt32BE(headerBytes - 4) + headerBytes - 4;
      if (heard.length < bytes) return;
      const kind = started ? String.fromCharCode(heard[0]!) : "startup";
      const body = heard.subarray(headerBytes, bytes);
      heard = heard.subarray(bytes);
      started = true;
      answer(kind, body.toString("latin1"), statement, say);
    }
  });
}

/** Answers one message of the client. */
function answer(
  kind: string,
  body: string,
  statement: { bound: boolean },
  say: (at: Phase, honest: Buffer) => void,
): void {
  const { bound } = statement;
  if (kind === "startup") {
    say("startup", LOGGED_IN);
    say("loggedIn", Buffer.alloc(0));
  } else if (kind === "B") statement.bound = true;
  else if (kind === "c") say("rowsIn", done("COPY 1"));
  else if (kind === "Q") say(...answerText(body));
  else if (kind === "S" && bound) {
    statement.bound = false;
    say("statement", Buffer.concat([message("1"), message("2"), ONE_ROW]));
  } else if (kind === "S") say("describe", Buffer.concat([message("1"), message("t", "\0\0"), column("a"), READY]));
}

function answerText(sql: string): [Phase, Buffer] {
  if (/^copy .* from stdin/s.test(sql)) return ["copyIn", message("G", "\0\0\0")];
  if (/^copy /.test(sql)) return ["copyOut", Buffer.concat([COPIED, message("c"), done("COPY 1")])];
  return ["statement", /pg_backend_pid/.test(sql) ? ONE_ROW : done("OK")];
}

const ONE_ROW = Buffer.concat([column("pid"), row("4711"), done("SELECT 1")]);
const COPIED = Buffer.concat([message("H", "\0\0\0"), message("d", "a\n"), message("d", "1\n")]);

/** Sends bytes, and then nothing. */
export const send =
  (...bytes: Buffer[]) =>
  (client: TLSSocket) =>
    void client.write(Buffer.concat(bytes));

/** Sends the same bytes again and again for as long as anybody takes them, and counts. */
export function endlessly(bytes: Buffer, first: Buffer = Buffer.alloc(0)) {
  const sent = { bytes: 0 };
  const block = Buffer.concat(Array.from({ length: Math.max(1, Math.floor(65_536 / bytes.length)) }, () => bytes));
  const act = (client: TLSSocket) => {
    client.write(first);
    const more = () => {
      if (client.destroyed) return;
      sent.bytes += block.length;
      client.write(block, (error) => !error && setImmediate(more));
    };
    more();
  };
  return { act, sent };
}
