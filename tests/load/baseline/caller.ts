import { createHash } from "node:crypto";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { resolveApiKey } from "../../../subgraphs/compute/api-key/resolve-api-key.ts";
import type { BareDatabase } from "./bare-database.ts";

/** Finds callers as the platform does: by the key's digest, believed for a few seconds, counted by the second. */
export class Callers {
  readonly #db: BareDatabase;
  readonly #known = new Map<string, { actor: Promise<Actor | null>; staleAtMs: number }>();
  readonly #counts = new Map<string, { second: number; count: number }>();

  constructor(db: BareDatabase) {
    this.#db = db;
  }

  /** Null for a key that nobody knows and for one that asked too often. */
  async callerOf(authorization: string | undefined): Promise<Actor | null> {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (!key) return null;
    const digest = createHash("sha256").update(key).digest("base64");
    const nowMs = Date.now();
    let known = this.#known.get(digest);
    if (!known || known.staleAtMs <= nowMs) {
      known = { actor: resolveApiKey(this.#db, key, new Date(nowMs)), staleAtMs: nowMs + LIMITS.actorCacheMs };
      this.#known.set(digest, known);
    }
    const actor = await known.actor;
    return actor && this.#mayAsk(actor.keyId, nowMs) ? actor : null;
  }

  #mayAsk(keyId: string, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    const counted = this.#counts.get(keyId);
    const count = counted?.second === second ? counted.count + 1 : 1;
    this.#counts.set(keyId, { second, count });
    return count <= LIMITS.requestsPerKeyPerSecond;
  }
}
