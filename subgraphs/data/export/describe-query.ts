import type pg from "pg";
import { ExpectedAnswers } from "../connection/expected-answers.ts";
import type { QueryColumn } from "./column-types.ts";

/** What the driver's connection offers beneath its queries. */
interface Wire {
  parse(query: { text: string; name: string; types: number[] }): void;
  describe(what: { type: "S" | "P"; name: string }): void;
  sync(): void;
}

/**
 * The columns of a query's result, asked of the database without running it. The database refuses a text here that is
 * more than one statement to it, whatever another parser made of it.
 */
export function describeQuery(client: pg.Client, sql: string): Promise<QueryColumn[]> {
  return new Promise((resolve, reject) => {
    client.query(new Description(sql, resolve, reject));
  });
}

/** A query of the driver's extended protocol that stops after the description. */
class Description extends ExpectedAnswers {
  readonly #sql: string;
  readonly #resolve: (columns: QueryColumn[]) => void;
  readonly #reject: (error: Error) => void;
  #columns: QueryColumn[] = []; // a statement without a result is described by nothing

  constructor(sql: string, resolve: (columns: QueryColumn[]) => void, reject: (error: Error) => void) {
    super();
    this.#sql = sql;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: pg.Connection): void {
    const wire = connection as unknown as Wire;
    wire.parse({ text: this.#sql, name: "", types: [] });
    wire.describe({ type: "S", name: "" });
    wire.sync();
  }

  override handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, typeId: dataTypeID }));
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#columns);
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
}
