import { hasSqlDetails, type ParseResult, parse } from "libpg-query";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { EXPORT } from "./export.refusals.ts";

/**
 * The query as it can be put into another statement: without a semicolon and what follows it. PostgreSQL's own parser
 * says what it is; what it does when it runs is limited by a read-only transaction. Refused as `invalid_query`, with
 * what is wrong and where, unless it is one SELECT, or a WITH that leads to one, that has no side effect in its words.
 */
export async function checkQuery(sql: string): Promise<string> {
  if (sql.length > LIMITS.exportSqlLength) throw invalid(`A query has at most ${LIMITS.exportSqlLength} characters.`);
  if (sql.trim() === "") throw invalid("There is no query.");
  if (sql.includes("\0") || !sql.isWellFormed()) throw invalid("The query holds a character that no SQL can.");
  const { stmts = [] } = await parsed(sql);
  const [first, second] = stmts;
  if (!first?.stmt) throw invalid("There is no query.");
  if (second) throw invalid(`A second statement begins${at(sql, offsetOf(sql, second.stmt_location ?? 0))}.`);
  // The parser's statement begins after what stands before it, comments too.
  const start = first.stmt_location ?? 0;
  const rest = Buffer.from(sql).subarray(start);
  const query = rest.subarray(0, first.stmt_len || rest.length).toString();
  if (!/^(select|with)\b/i.test(query) || !("SelectStmt" in first.stmt))
    throw invalid("The query must begin with SELECT or WITH.");
  requireReading(sql, first.stmt);
  return query;
}

async function parsed(sql: string): Promise<ParseResult> {
  try {
    return await parse(sql);
  } catch (error) {
    if (hasSqlDetails(error) && error.sqlDetails)
      throw invalid(`${error.message}${at(sql, error.sqlDetails.cursorPosition)}.`);
    if (error instanceof RangeError) throw invalid("The query is nested too deeply.");
    throw error;
  }
}

/** Parts of a statement that write, lock or wait for values, by the names of the parser's nodes. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  InsertStmt: "INSERT",
  UpdateStmt: "UPDATE",
  DeleteStmt: "DELETE",
  MergeStmt: "MERGE",
  IntoClause: "SELECT INTO",
  intoClause: "SELECT INTO",
  LockingClause: "a locking clause such as FOR UPDATE",
  ParamRef: "a parameter such as $1",
};

/** Not recursive: a query may be nested more deeply than a call may be. */
function requireReading(sql: string, root: object): void {
  const open: object[] = [root];
  for (let node = open.pop(); node; node = open.pop()) {
    for (const [name, value] of Object.entries(node)) {
      if (value === null || typeof value !== "object") continue;
      const what = Object.hasOwn(FORBIDDEN, name) ? FORBIDDEN[name] : undefined;
      if (what) throw invalid(`A query that is exported cannot have ${what}${where(sql, value)}.`);
      open.push(value);
    }
  }
}

function where(sql: string, node: object): string {
  const { location } = node as { location?: unknown };
  return typeof location === "number" ? at(sql, offsetOf(sql, location)) : "";
}

/** The parser counts bytes in its tree, and characters in its errors. */
function offsetOf(sql: string, bytes: number): number {
  return Buffer.from(sql).subarray(0, bytes).toString().length;
}

function at(sql: string, offset: number): string {
  const lines = sql.slice(0, offset).split("\n");
  return `, line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

function invalid(message: string): Refused {
  return new Refused(EXPORT.invalid_query, { field: "/sql", message });
}
