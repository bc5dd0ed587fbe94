import type { Socket } from "node:net";
import pg from "pg";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { guardListeners } from "./guard-listeners.ts";
import { GuardedSocket } from "./guarded-socket.ts";
import { MessageGuard, ProtocolViolation } from "./message-guard.ts";

/** What the driver does beneath its types. */
interface Driver {
  attachListeners(stream: Socket): void;
}

export interface GuardedConnectionOptions {
  /** Private hosts that the operator opened. */
  exceptions: PrivateExceptions;
  ssl: object;
}

/**
 * The driver's connection to a database that nobody vouches for. Whatever the database says ends this connection at
 * worst: everything is looked at before the driver reads it, and what the driver throws over it does not get further.
 */
export class GuardedConnection extends pg.Connection {
  /** The TCP connection; TLS is above it. */
  readonly socket: GuardedSocket;
  readonly #guard = new MessageGuard();

  constructor({ exceptions, ssl }: GuardedConnectionOptions) {
    const socket = new GuardedSocket(exceptions);
    // The driver would take how TLS is negotiated from the platform's environment.
    const config = { stream: socket, ssl, sslNegotiation: "postgres", keepAlive: true };
    super(config as unknown as pg.ConnectionConfig);
    this.socket = socket;
  }

  /** From now on rows may be copied out of the database, this many bytes of them in all. */
  allowCopy(maxBytes: number): void {
    this.#guard.allowCopy(maxBytes);
  }

  /** Drops the connection at once; what waits for the database is told this reason. */
  cut(reason?: Error): void {
    (this.stream as Socket).destroy(reason);
    this.socket.destroy();
  }

  /** The driver calls this with the stream of TLS as soon as there is one. */
  attachListeners(stream: Socket): void {
    guardListeners(stream);
    const push = stream.push.bind(stream);
    // Whatever arrives comes through here, whether it is listened to or read.
    stream.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      try {
        if (chunk) this.#guard.take(chunk);
      } catch (error) {
        stream.destroy(error as ProtocolViolation);
        return false;
      }
      return push(chunk, encoding);
    };
    (pg.Connection.prototype as unknown as Driver).attachListeners.call(this, stream);
    this.#guardParser(stream);
  }

  /** A copy takes the driver's listener off the stream and calls it by itself. */
  #guardParser(stream: Socket): void {
    const [parse] = stream.listeners("data") as ((chunk: Buffer) => void)[];
    if (!parse) throw new Error("the driver does not listen to its connection");
    stream.removeListener("data", parse);
    stream.on("data", (chunk: Buffer) => {
      if (stream.destroyed) return; // what is left of the chunk that ended it
      try {
        parse(chunk);
      } catch (error) {
        stream.destroy(new ProtocolViolation("an answer that the driver cannot read", { cause: error }));
      }
    });
  }
}

/** The guarded connection of a client, null for one that was opened without. */
export function guardedConnection(client: pg.Client): GuardedConnection | null {
  return client.connection instanceof GuardedConnection ? client.connection : null;
}
