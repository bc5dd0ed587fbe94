import pg from "pg";
import { LIMITS } from "../kernel/limits.ts";

/** Prepared statements a connection keeps; texts beyond that are sent unprepared. */
const MAX_STATEMENTS = 500;
const names = new Map<string, string>();

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: string) =>
    oid === pg.types.builtins.INT8 && format !== "binary"
      ? BigInt
      : pg.types.getTypeParser(oid, format as never)) as never,
};

/**
 * What a connection is told before its first use. Neither is a parameter of the connection itself, which poolers in session
 * mode refuse: a session that a pooler gives on is reset.
 */
const BOUNDS = `set idle_in_transaction_session_timeout = ${LIMITS.idleTransactionMs}; set lock_timeout = ${LIMITS.lockWaitMs}`;

/**
 * Names every statement that has values, so the server plans it once a connection (measured: a third more commands a
 * second), and reads int8 as bigint: a count or an amount never loses digits on its way. What it locks is bounded: a
 * transaction that its process leaves open ends by itself, and no statement waits for another's lock for ever.
 */
export class PreparingClient extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (!callback)
      return new Promise((resolve, reject) => this.connect((error) => (error ? reject(error) : resolve(this))));
    super.connect((error: Error | null) => {
      if (error) return callback(error);
      this.on("error", () => {}); // a loss is told by the statement that meets it; nobody else listens before the callback
      super.query(BOUNDS, callback);
    });
    return undefined;
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's overloads cannot be spelled in one signature
  override query(a: any, b?: any, c?: any): any {
    if (typeof a !== "string") return super.query(a, b, c);
    if (!Array.isArray(b) || b.length === 0)
      return super.query({ text: a, types } as never, typeof b === "function" ? b : c);
    let name = names.get(a);
    if (!name && names.size < MAX_STATEMENTS) {
      name = `s${names.size}`;
      names.set(a, name);
    }
    return super.query({ name, text: a, values: b, types } as never, c);
  }
}
