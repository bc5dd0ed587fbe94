import { createHmac, timingSafeEqual } from "node:crypto";

/** What a key may be used for. */
export const SCOPES = [
  "workloads:read",
  "workloads:write",
  "sandboxes:read",
  "sandboxes:write",
  "data:read",
  "data:write",
  "pools:read",
  "pools:write",
  "admin",
] as const;
export type Scope = (typeof SCOPES)[number];

/** Who asks: resolved from an API key once, at the edge, and carried from there. */
export interface Actor {
  /** The team; every row that the actor may see has it as its tenant. */
  readonly tenantId: string;
  readonly keyId: string;
  /** Null for a team's key that belongs to no member. */
  readonly memberId: string | null;
  /** The member's e-mail address; empty for a team's key. */
  readonly email: string;
  readonly name: string;
  readonly role: "admin" | "member" | "team";
  readonly scopes: readonly Scope[];
}

/** How long a signed actor is good for: enough for one hop, too short to be worth stealing. */
export const SIGNED_ACTOR_TTL_MS = 30_000;

/** An actor as a header value between processes of one deployment: `payload.signature`. */
export function signActor(actor: Actor, key: Uint8Array, now: Date): string {
  const body = Buffer.from(JSON.stringify({ ...actor, exp: now.getTime() + SIGNED_ACTOR_TTL_MS })).toString(
    "base64url",
  );
  return `${body}.${mac(body, key).toString("base64url")}`;
}

/** The actor of a header value; null when the signature is wrong or its time is over. */
export function verifyActor(header: string, key: Uint8Array, now: Date): Actor | null {
  const [body, signature, extra] = header.split(".");
  if (!body || !signature || extra !== undefined) return null;
  const expected = mac(body, key);
  const given = Buffer.from(signature, "base64url");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  const { exp, ...actor } = JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as Actor & { exp: number };
  return exp > now.getTime() ? actor : null;
}

function mac(body: string, key: Uint8Array): Buffer {
  return createHmac("sha256", key).update(body).digest();
}
