import { GraphQLError } from "graphql";
import { Refused } from "../infra/kernel/refusal.ts";
import { BoundedMap } from "./bounded-map.ts";
import { type Documents, documentHash, type KnownDocument } from "./documents.ts";
import { GATEWAY, requestRefusal } from "./refusals.ts";

/** What a client sends: the text, its hash, or both. */
export interface DocumentRequest {
  query?: unknown;
  extensions?: unknown;
}

const MAX_REGISTERED = 2_000;

/** Documents by hash: those that the deployment registered, and those that clients sent with their hash before. */
export class PersistedOperations {
  readonly #documents: Documents;
  readonly #registered: ReadonlyMap<string, string>;
  readonly #sent = new BoundedMap<string, string>(MAX_REGISTERED);
  /** True when nothing but registered operations may run. */
  readonly only: boolean;

  constructor(documents: Documents, options?: { operations: ReadonlyMap<string, string>; only: boolean }) {
    this.#documents = documents;
    this.#registered = options?.operations ?? new Map();
    this.only = options?.only ?? false;
    for (const [hash, text] of this.#registered) {
      if (documentHash(text) !== hash)
        throw new Error(`the persisted operation ${hash} has another hash than its text`);
      const [problem] = documents.read(text, hash).problems;
      if (problem) throw new Error(`the persisted operation ${hash} can't run: ${problem.message}`);
    }
  }

  /** The text of a hash; undefined when nobody has sent or registered it. */
  text(hash: string): string | undefined {
    return this.#registered.get(hash) ?? this.#sent.get(hash);
  }

  /** Keeps a text for later requests that send its hash alone. */
  keep(hash: string, text: string): void {
    if (!this.only) this.#sent.set(hash, text);
  }

  /** The document that a client means, for the streams; throws a GraphQLError when there is none that may run. */
  resolve(request: DocumentRequest): KnownDocument {
    const hash = persistedHash(request.extensions);
    const text = typeof request.query === "string" && request.query !== "" ? request.query : hash && this.text(hash);
    if (!text) throw hash ? notFound() : badRequest("The request has neither a query nor the hash of one.");
    const actual = documentHash(text);
    if (hash && hash !== actual) throw badRequest("The hash is not that of the query.");
    this.refuseUnregistered(actual);
    const known = this.#documents.read(text, actual);
    if (hash && known.problems.length === 0) this.keep(actual, text);
    return known;
  }

  /** Throws when only registered operations may run and this is none. */
  refuseUnregistered(hash: string): void {
    if (this.only && !this.#registered.has(hash)) throw requestRefusal(new Refused(GATEWAY.not_persisted));
  }
}

function persistedHash(extensions: unknown): string | null {
  const persisted = (extensions as { persistedQuery?: { sha256Hash?: unknown } } | null | undefined)?.persistedQuery;
  return typeof persisted?.sha256Hash === "string" ? persisted.sha256Hash : null;
}

/** The protocol of persisted queries: the client sends the text once more, with its hash. */
function notFound(): GraphQLError {
  return new GraphQLError("PersistedQueryNotFound", { extensions: { code: "PERSISTED_QUERY_NOT_FOUND" } });
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, {
    extensions: { code: "BAD_REQUEST", http: { status: 400, headers: new Map() } as never },
  });
}
