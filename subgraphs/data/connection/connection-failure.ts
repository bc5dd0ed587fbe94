import { PrivateAddress } from "../../../infra/net/guarded-lookup.ts";

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

/** Codes of Node's TLS for a certificate that is in order, but for another host. */
const OTHER_HOST = new Set(["ERR_TLS_CERT_ALTNAME_INVALID", "ERR_TLS_CERT_ALTNAME_FORMAT"]);
/** Codes of OpenSSL's verification, and of a peer that does not speak TLS. */
const UNTRUSTED =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_|EPROTO$|ERR_SSL_|ERR_TLS_|ERR_OSSL_)/;

/** The reason that lies in an error of a socket or of TLS; null for anything else. */
export function socketReason(error: unknown): FailureReason | null {
  if (error instanceof AggregateError && error.errors.length > 0) return socketReason(error.errors[0]);
  if (error instanceof PrivateAddress) return "private_address";
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (OTHER_HOST.has(code)) return "tls_host_mismatch";
  if (UNTRUSTED.test(code)) return "tls_untrusted";
  if (code === "ETIMEDOUT") return "timeout";
  if (/^(E[A-Z]+|EAI_[A-Z]+)$/.test(code)) return "unreachable";
  return null;
}
