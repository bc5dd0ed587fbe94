/** How TLS with a server failed: its certificate is for another host, nobody known vouches for it, or there was no TLS. */
export type TlsFailure = "other_host" | "untrusted" | "failed";

const OTHER_HOST = /^(ERR_TLS_CERT_ALTNAME_|HOSTNAME_MISMATCH)/;
/** Names that OpenSSL's verification gives to what it finds. */
const UNTRUSTED =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERR_TLS_CERT_SIGNATURE)/;
/** A peer that does not speak TLS, or no version or cipher of it that is spoken here. */
const FAILED = /^(EPROTO$|ERR_SSL_|ERR_TLS_|ERR_OSSL_)/;

/** What a socket's error code says about TLS; null when it is about something else. */
export function tlsFailure(code: string): TlsFailure | null {
  if (OTHER_HOST.test(code)) return "other_host";
  if (UNTRUSTED.test(code)) return "untrusted";
  return FAILED.test(code) ? "failed" : null;
}
