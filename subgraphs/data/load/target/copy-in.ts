import { once } from "node:events";
import type pg from "pg";
import { ExpectedAnswers } from "../../connection/expected-answers.ts";
import { ProtocolViolation } from "../../connection/message-guard.ts";

/** What the driver's connection offers beneath its queries. */
interface Wire {
  readonly stream: NodeJS.WritableStream;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/**
 * Copies into a table and gives the number of rows that the database took. Nothing is read from the source before the
 * database took what came before. Throws the error of the database, of its connection or of the source.
 */
export async function copyIn(client: pg.Client, statement: string, source: AsyncIterable<Buffer>): Promise<number> {
  const copy = new CopyIn(statement);
  const ended = () => copy.handleError(new Error("the connection ended within a copy"));
  client.once("end", ended);
  try {
    client.query(copy);
    await copy.begun;
    return await copy.copy(source);
  } finally {
    client.off("end", ended);
  }
}

class CopyIn extends ExpectedAnswers {
  /** The database waits for rows, or the copy is over. */
  readonly begun: Promise<unknown>;
  readonly #statement: string;
  readonly #beginning = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<number>();
  #wire: Wire | null = null;
  #rows: number | null = null;
  #finishing = false;

  constructor(statement: string) {
    super();
    this.#statement = statement;
    this.#over.promise.catch(() => {}); // whoever waits is told through a race
    this.begun = Promise.race([this.#beginning.promise, this.#over.promise]);
  }

  submit(connection: pg.Connection): void {
    this.#wire = connection as unknown as Wire;
    this.#wire.query(this.#statement);
  }

  /** Sends everything and waits for the database's word on it. */
  async copy(source: AsyncIterable<Buffer>): Promise<number> {
    const wire = this.#wire!;
    try {
      for await (const chunk of source) await this.#send(wire, chunk);
    } catch (error) {
      wire.sendCopyFail("the rows broke off");
      await this.#over.promise.catch(() => {}); // it refuses the copy now, and the source says why
      throw error;
    }
    this.#finishing = true;
    wire.endCopyFrom();
    return await this.#over.promise;
  }

  async #send(wire: Wire, chunk: Buffer): Promise<void> {
    wire.sendCopyFromChunk(chunk);
    const stopped = new AbortController();
    const room = wire.stream as NodeJS.WritableStream & { writableNeedDrain: boolean };
    const drained = room.writableNeedDrain ? once(room, "drain", { signal: stopped.signal }) : null;
    drained?.catch(() => {}); // the end of the copy ends the wait
    try {
      await Promise.race([this.#over.promise, drained ?? Promise.resolve()]);
    } finally {
      stopped.abort();
    }
  }

  override handleCopyInResponse(): void {
    this.#beginning.resolve();
  }

  override handleCommandComplete({ text }: { text: string }): void {
    const [, rows] = /^COPY (\d+)$/.exec(text) ?? [];
    this.#rows = rows === undefined ? null : Number(rows);
  }

  handleReadyForQuery(): void {
    if (this.#finishing && this.#rows !== null) this.#over.resolve(this.#rows);
    else this.#over.reject(new ProtocolViolation("a copy that ended by itself"));
  }

  handleError(error: Error): void {
    this.#over.reject(error);
  }
}
