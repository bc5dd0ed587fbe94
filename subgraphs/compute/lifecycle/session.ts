/** An order with the rows that it is about, none of which ever changes. */
export interface OrderRows {
  orderId: string;
  placementId: string;
  workloadId: string;
  tenantId: string;
}

/** The order that a host speaks for, after its token or session was checked. */
export interface Session extends OrderRows {
  /** SHA-256 of the session's text: a later exchange of the token replaces it, and this one is fenced. */
  sessionHash: string;
}

/**
 * Why a host is turned away; `fenced` and `unknown` tell it to drop the guest and everything of it, `retry` to come again.
 */
export type SessionRefusal = { refused: "fenced" | "unknown" | "bad_token" | "retry"; message: string };

export function refusal(refused: SessionRefusal["refused"], message: string): SessionRefusal {
  return { refused, message };
}

export const UNKNOWN_ORDER = refusal("unknown", "The order is not known.");
export const ORDER_OVER = refusal("fenced", "The order is over.");
export const OVERTAKEN = refusal("retry", "A later exchange of the token replaced this one.");
export const NOT_THE_LATEST = refusal("fenced", "The session is not the order's latest one.");
