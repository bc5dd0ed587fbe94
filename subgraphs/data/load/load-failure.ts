import { ColumnarFailure } from "../../../infra/columnar/task.ts";
import { ConnectionFailure } from "../connection/connection-failure.ts";

/** Words for a load that failed: all that is told of it. */
export const LOAD_FAILURE_WORDS = [
  "connection_lost",
  "credential_inactive",
  "table_incompatible",
  "type_mismatch",
  "unsupported_file",
  "size_limit",
  "permission_denied",
  "superseded",
  "internal",
] as const;
export type LoadFailureWord = (typeof LOAD_FAILURE_WORDS)[number];

/** Why a load failed. The message is for operators and holds no value of a file, a row or a credential. */
export class LoadFailure extends Error {
  override readonly name = "LoadFailure";
  readonly word: LoadFailureWord;

  constructor(word: LoadFailureWord, message: string) {
    super(message);
    this.word = word;
  }
}

/** A failure in the words of loads, for whatever broke while one was under way. */
export function loadFailure(error: unknown): LoadFailure {
  if (error instanceof LoadFailure) return error;
  if (error instanceof ColumnarFailure) return new LoadFailure(wordOfFile(error), error.message);
  if (error instanceof ConnectionFailure) {
    const refused = error.reason === "credential_inactive" || error.reason === "credentials_rejected";
    return new LoadFailure(refused ? "credential_inactive" : "connection_lost", error.message);
  }
  return new LoadFailure("internal", error instanceof Error ? error.name : "an unknown failure");
}

function wordOfFile({ reason, detail }: ColumnarFailure): LoadFailureWord {
  switch (reason) {
    case "unreadable":
    case "crashed":
    case "column_names":
      return "unsupported_file";
    case "column_type":
      // A line is only known of JSON, whose column changes its type there; a Parquet column is of one that no table has.
      return detail.line === undefined ? "unsupported_file" : "type_mismatch";
    case "unrepresentable":
      return "type_mismatch";
    case "limit":
    case "memory":
    case "timeout":
      return "size_limit";
    default:
      return "internal";
  }
}

/** No class of SQLSTATE begins with an E, and the names of system errors do. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/** The word for an error of the target's database or of the connection to it. */
export function targetFailure(error: unknown): LoadFailure {
  if (error instanceof LoadFailure) return error;
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (!SQLSTATE.test(code)) return new LoadFailure("connection_lost", "The connection to the database broke.");
  return new LoadFailure(wordOfState(code), `The database refused with SQLSTATE ${code}.`);
}

/** By class: 08 connection, 22 values, 23 constraints, 3F and 42 names and types, 53 and 57 the server's own state, 54 sizes. */
function wordOfState(code: string): LoadFailureWord {
  if (code === "42501" || code === "25006") return "permission_denied";
  switch (code.slice(0, 2)) {
    case "22":
      return "type_mismatch";
    case "23":
    case "3F":
    case "42":
    case "0A":
    case "P0":
      return "table_incompatible";
    case "54":
      return "size_limit";
    default:
      return "connection_lost";
  }
}
