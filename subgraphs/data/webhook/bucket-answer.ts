import type { BucketCredentials } from "../published.ts";

/** A credential is shorter than this; longer texts are no credentials. */
const CREDENTIAL_LENGTH = 16_384;

/**
 * The credentials in a receiver's answer; null when it has not the documented shape for the scheme, or when they have
 * expired. Members beyond the shape are ignored.
 */
export function readBucketAnswer(scheme: "s3" | "gs", text: string, now: Date): BucketCredentials | null {
  const answer = parse(text);
  const expiresAt = answer && instant(answer.expires_at);
  if (!expiresAt || expiresAt <= now) return null;
  if (scheme === "gs") {
    const accessToken = credential(answer.access_token);
    return accessToken ? { scheme, accessToken, expiresAt } : null;
  }
  const accessKeyId = credential(answer.access_key_id);
  const secretAccessKey = credential(answer.secret_access_key);
  const sessionToken = answer.session_token === undefined ? null : credential(answer.session_token);
  if (!accessKeyId || !secretAccessKey || (answer.session_token !== undefined && !sessionToken)) return null;
  return { scheme, accessKeyId, secretAccessKey, sessionToken, expiresAt };
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null; // no JSON is no answer
  }
}

/** Visible ASCII: anything else could not be sent in a header. */
function credential(value: unknown): string | null {
  return typeof value === "string" && value.length <= CREDENTIAL_LENGTH && /^[\x21-\x7e]+$/.test(value) ? value : null;
}

/** An RFC 3339 instant. */
function instant(value: unknown): Date | null {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(value))
    return null;
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? null : at;
}
