import { PrivateAddress } from "../../../infra/net/guarded-lookup.ts";
import { tlsFailure } from "../../../infra/net/tls-failure.ts";

/** Why a service was not reached. */
export const FAILURE_REASONS = [
  "unreachable",
  "tls_untrusted",
  "tls_host_mismatch",
  "credentials_rejected",
  "timeout",
  "database_refused",
  "private_address",
  "credential_inactive",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

const SENTENCES: Record<FailureReason, string> = {
  unreachable: "The host does not answer, or its name has no address.",
  tls_untrusted: "The server does not speak TLS, or no known authority signed its certificate.",
  tls_host_mismatch: "The server's certificate is for another host.",
  credentials_rejected: "The server does not accept the credential.",
  timeout: "The server took too long.",
  database_refused: "The server took the credential and refused the rest.",
  private_address: "The host is not on the public internet, and the operator has not opened it.",
  credential_inactive: "The pinned version of the secret is not there any more.",
};

/** A service could not be reached with its credential. The message is a fixed sentence: it never repeats a value. */
export class ConnectionFailure extends Error {
  override readonly name = "ConnectionFailure";
  readonly reason: FailureReason;

  constructor(reason: FailureReason) {
    super(SENTENCES[reason]);
    this.reason = reason;
  }
}

/** The reason that lies in an error of a socket or of TLS; null for anything else. */
export function socketReason(error: unknown): FailureReason | null {
  if (error instanceof AggregateError && error.errors.length > 0) return socketReason(error.errors[0]);
  if (error instanceof PrivateAddress) return "private_address";
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  const tls = tlsFailure(code);
  if (tls) return tls === "other_host" ? "tls_host_mismatch" : "tls_untrusted";
  if (code === "ETIMEDOUT") return "timeout";
  if (/^(E[A-Z]+|EAI_[A-Z]+)$/.test(code)) return "unreachable";
  return null;
}
