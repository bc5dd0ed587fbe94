/** One kind of refusal: what a client can tell apart, and what a person can do about it. */
export interface RefusalKind {
  /** Stable word that programs match. */
  readonly code: string;
  /** HTTP status on the REST wire. 408, 429 and 5xx are retried by clients, so never a permanent refusal. */
  readonly status: number;
  /** What is wrong, for a person. */
  readonly message: string;
  /** What to do about it, for a person. */
  readonly fix: string;
}

/** Particulars of one refusal. */
export interface RefusalDetail {
  /** JSON pointer of the refused field, such as `/requirements/gpu`. */
  field?: string;
  /** Replaces the kind's message where the particular case says more. */
  message?: string;
  /** Replaces the kind's fix. */
  fix?: string;
  /** Further members of the error body, in wire spelling (snake_case). */
  extra?: Readonly<Record<string, unknown>>;
  /** Seconds after which a retry makes sense; becomes the Retry-After header. */
  retryAfterSeconds?: number;
}

/**
 * A refusal on its way to the caller. It is thrown because it must undo the command's transaction;
 * it is a value all the same: faces translate it, nobody logs it as a fault.
 */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly kind: RefusalKind;
  readonly detail: RefusalDetail;

  constructor(kind: RefusalKind, detail: RefusalDetail = {}) {
    super(detail.message ?? kind.message);
    this.kind = kind;
    this.detail = detail;
  }

  get fix(): string {
    return this.detail.fix ?? this.kind.fix;
  }
}

/** A noun's catalogue: `refusals({ asset_in_use: [409, "…", "…"] })`. Codes are the keys. */
export function refusals<const T extends Record<string, readonly [status: number, message: string, fix: string]>>(
  catalogue: T,
): { readonly [K in keyof T]: RefusalKind } {
  return Object.freeze(
    Object.fromEntries(
      Object.entries(catalogue).map(([code, [status, message, fix]]) => [
        code,
        Object.freeze({ code, status, message, fix }),
      ]),
    ),
  ) as { readonly [K in keyof T]: RefusalKind };
}

/** Refusals that any operation may give. */
export const COMMON = refusals({
  invalid_json: [400, "The body is not a JSON object in UTF-8.", "Send one JSON object."],
  duplicate_field: [400, "A member is repeated in the JSON body.", "Send each member once."],
  invalid_request: [400, "A field of the request is not acceptable.", "Correct the field that the message names."],
  unknown_field: [400, "The body has a member that this request does not take.", "Remove the member."],
  invalid_cursor: [400, "The cursor is not one that this list handed out.", "Start again without a cursor."],
  invalid_limit: [400, "The page size is not acceptable.", "Use a whole number in the documented range."],
  missing_idempotency_key: [
    400,
    "This request needs an Idempotency-Key.",
    "Send the header Idempotency-Key (in GraphQL: idempotencyKey), the same for each repeat of one request.",
  ],
  invalid_idempotency_key: [
    400,
    "The Idempotency-Key is not acceptable.",
    "Use 1 to 256 printable ASCII characters without spaces.",
  ],
  unauthorized: [
    401,
    "The credentials are missing, wrong, expired or revoked.",
    "Send a valid API key as a bearer token.",
  ],
  forbidden: [403, "This needs an administrator of the team.", "Ask an administrator, or use an administrator's key."],
  insufficient_scope: [403, "The key lacks the scope that this needs.", "Use a key that has the scope."],
  attribution_required: [403, "This needs a key that belongs to a member.", "Use a member's own key."],
  not_found: [404, "There is no such object.", "Check the id; it must belong to your team."],
  method_not_allowed: [405, "This path does not take that method.", "Use a documented method."],
  body_too_large: [413, "The body is too large.", "Send a smaller body, or upload the data as an asset."],
  unsupported_media_type: [415, "The body's media type is not acceptable.", "Send application/json."],
  idempotency_conflict: [
    409,
    "The key was used for a different request.",
    "Send a new Idempotency-Key for a new request.",
  ],
  rate_limited: [429, "Too many requests.", "Wait as long as Retry-After says."],
  not_implemented: [
    501,
    "This operation is documented but not part of this release.",
    "See the README for what is served.",
  ],
  idempotency_in_flight: [
    503,
    "The first request with this key has not finished.",
    "Repeat the request after a second.",
  ],
  unavailable: [503, "A part of the platform cannot be reached just now.", "Repeat the request shortly."],
});
