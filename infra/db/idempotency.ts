import { hash } from "node:crypto";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { COMMON, Refused } from "../kernel/refusal.ts";
import { column, table } from "./attr.ts";
import type { Tx } from "./database.ts";

/**
 * Idempotency of keyed requests, a state machine over one row per key:
 *
 * | found            | same fingerprint        | another fingerprint |
 * | ---------------- | ----------------------- | ------------------- |
 * | no row           | new: insert, go on      | new                 |
 * | row uncommitted  | wait on the unique index, then look again | the same |
 * | row committed    | replay: answer its object | conflict: 409     |
 *
 * The row is written in the command's own transaction: a refusal or a crash takes it back, so a corrected retry under
 * the same key is new. A key lives as long as the object that it made.
 */
@table("infra", "idempotency_key")
export class IdempotencyKey {
  /** Hash of tenant, logical operation, path ids and the caller's key. */
  @column.id() id!: string;
  @column.text({ index: true }) tenantId!: string;
  @column.text() fingerprint!: string;
  /** The object that the first request made. */
  @column.text({ index: true }) objectId!: string;
  @column.at() createdAt!: Date;
}

export interface KeyedRequest {
  tenantId: string;
  /** Logical operation, the same through every door, such as `createWorkload`. */
  operation: string;
  /** Ids of the path, so the same key on another object is another request. */
  pathIds?: readonly string[];
  key: string;
  /** Normalised payload: recased, ignored members dropped, defaults not filled in. */
  payload: unknown;
  now: Date;
}

/** What became of a keyed request: `replayed` names the object of the first one. */
export type Once = { replayed: false } | { replayed: true; objectId: string };

/** Where the graph takes the key. */
const AT_KEY = { field: "/idempotency_key" };

/** Takes the key for `objectId`, or tells that it was taken for the same request; another request is refused. */
export async function once(tx: Tx, request: KeyedRequest, objectId: string): Promise<Once> {
  const { id, fingerprint } = identityOf(request);
  const inserted = await tx.sql(
    `insert into infra.idempotency_key (id, tenant_id, fingerprint, object_id, created_at) values ($1, $2, $3, $4, $5)
     on conflict (id) do nothing returning id`,
    [id, request.tenantId, fingerprint, objectId, request.now],
  );
  if (inserted.length > 0) return { replayed: false };
  // A statement of its own: READ COMMITTED gives it a snapshot that sees the winner.
  const [seen] = await tx.sql<{ fingerprint: string; object_id: string }>(
    "select fingerprint, object_id from infra.idempotency_key where id = $1",
    [id],
  );
  if (!seen) throw new Refused(COMMON.idempotency_in_flight, { retryAfterSeconds: 1 });
  if (seen.fingerprint !== fingerprint) throw new Refused(COMMON.idempotency_conflict, AT_KEY);
  return { replayed: true, objectId: seen.object_id };
}

/** What a keyed request's row is found by, and what tells it from another request under the same key. */
export function identityOf(request: Omit<KeyedRequest, "now">): Pick<IdempotencyKey, "id" | "fingerprint"> {
  requireKey(request.key);
  return {
    id: sha256(JSON.stringify([request.tenantId, request.operation, ...(request.pathIds ?? []), request.key])),
    fingerprint: sha256(canonicalJson(request.payload)),
  };
}

/** Refuses a key that is not 1 to 256 printable ASCII characters without spaces. */
export function requireKey(key: string | null | undefined): asserts key is string {
  if (key === null || key === undefined || key === "") throw new Refused(COMMON.missing_idempotency_key, AT_KEY);
  if (key.length > LIMITS.idempotencyKeyLength || !/^[!-~]+$/.test(key))
    throw new Refused(COMMON.invalid_idempotency_key, AT_KEY);
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
