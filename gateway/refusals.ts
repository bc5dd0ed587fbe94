import { GraphQLError } from "graphql";
import { refusalError } from "../infra/graphql/errors.ts";
import { type RefusalKind, Refused, refusals } from "../infra/kernel/refusal.ts";

/** What the gateway itself refuses, and what it says when a part of the graph does not answer. */
export const GATEWAY = refusals({
  query_too_long: [400, "The document has too many tokens.", "Ask for less, or split the document."],
  query_too_deep: [400, "The operation nests too deeply.", "Ask for fewer levels, or split the operation."],
  too_many_aliases: [400, "The operation has too many aliases.", "Use fewer aliases, or split the operation."],
  too_many_root_fields: [400, "The operation has too many fields at its root.", "Split the operation."],
  query_too_costly: [400, "The operation may read too much.", "Ask for smaller pages or fewer fields."],
  too_many_operations: [
    400,
    "Too many operations run on this connection.",
    "Complete some, or open another connection.",
  ],
  operations_too_large: [
    400,
    "The operations that run on this connection hold too many bytes.",
    "Complete some, open another connection, or send smaller variables.",
  ],
  too_many_streams: [429, "The team has too many streams open.", "Close some, or wait until some end."],
  too_many_team_operations: [
    429,
    "The team runs too many operations on its streams.",
    "Complete some, or wait until some end.",
  ],
  team_operations_too_large: [
    429,
    "The operations that the team runs on its streams hold too many bytes.",
    "Complete some, or send smaller variables.",
  ],
  too_many_without_key: [
    429,
    "Too many callers without a key are connected.",
    "Connect again, and send the key at once.",
  ],
  operation_id_too_long: [400, "The operation's id has too many characters.", "Give a shorter id."],
  not_persisted: [403, "Only persisted operations run here.", "Send the hash of an operation that was registered."],
  subscription_needs_stream: [
    400,
    "A subscription needs a stream.",
    "Use graphql-ws on this path, or POST to /graphql/stream.",
  ],
  mutation_needs_post: [405, "A mutation can't be sent with GET.", "Send it with POST."],
  key_ended: [401, "The API key was revoked or has expired; this stream has ended.", "Connect again with a valid key."],
  subgraph_timeout: [
    504,
    "A part of the graph did not answer in time.",
    "Repeat the request; a mutation may have taken effect.",
  ],
  subgraph_unavailable: [503, "A part of the graph cannot be reached just now.", "Repeat the request shortly."],
  internal_error: [
    500,
    "Something went wrong on our side.",
    "Repeat the request; if it fails again, report the request id.",
  ],
});

/** A limit that was passed: says the limit and the number seen. */
export function beyond(kind: RefusalKind, limit: number, seen: number | string): Refused {
  return new Refused(kind, {
    message: `${kind.message} The limit is ${limit}, this has ${seen}.`,
    extra: { limit, seen },
  });
}

/** What a refusal says in the headers of an HTTP answer. */
export function refusalHeaders({ kind, detail }: Refused): Record<string, string> {
  return {
    ...(detail.retryAfterSeconds === undefined ? {} : { "retry-after": String(detail.retryAfterSeconds) }),
    ...(kind.status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
}

/** The GraphQL error of a refusal, which also sets the HTTP status when the whole request was refused. */
export function requestRefusal(refused: Refused): GraphQLError {
  const error = refusalError(refused);
  const headers = new Map(Object.entries(refusalHeaders(refused)));
  return new GraphQLError(error.message, {
    originalError: refused,
    extensions: { ...error.extensions, http: { status: refused.kind.status, headers } as never },
  });
}
