import { type RefusalKind, Refused } from "../../../../infra/kernel/refusal.ts";
import type { Fetched, FetchFailed, FetchFailure } from "../../../../infra/net/fetch-https.ts";
import { ASSET } from "../asset.refusals.ts";
import { tooLarge } from "../byte-meter.ts";

/** Most bytes of one answer that describes a source. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

const FAILURES: Readonly<Record<FetchFailure, readonly [RefusalKind, string]>> = {
  not_https: [ASSET.source_unavailable, "leads to an address without HTTPS"],
  private_address: [ASSET.source_private_address, "is not on the public internet"],
  too_many_redirects: [ASSET.source_unavailable, "redirects too often"],
  untrusted_certificate: [ASSET.source_unavailable, "has no certificate that can be trusted"],
  timeout: [ASSET.source_timeout, "did not go on for too long"],
  unknown_name: [ASSET.source_unavailable, "is a name without an address"],
  unreachable: [ASSET.source_unavailable, "cannot be reached, or broke off"],
};

/** A failed fetch as a refusal. It names the host alone: paths and queries may carry credentials. */
export function sourceRefusal(error: FetchFailed): Refused {
  const [kind, what] = FAILURES[error.failure];
  return Object.assign(new Refused(kind, { message: `${error.hostname} ${what}.` }), { cause: error });
}

/** The answer if it is a 200; refused by its status otherwise. */
export async function requireAnswer(fetched: Fetched): Promise<Fetched> {
  if (fetched.status === 200) return fetched;
  await fetched.discard();
  const host = fetched.url.hostname;
  const message = `${host} answered ${fetched.status}.`;
  if (isRateLimit(fetched))
    throw new Refused(ASSET.source_unavailable, {
      message: `${host} takes no more requests for now.`,
      fix: "Import again later, or with a token.",
    });
  if (fetched.status === 401 || fetched.status === 403) throw new Refused(ASSET.source_unauthorized, { message });
  if (fetched.status === 404)
    throw new Refused(ASSET.source_unavailable, {
      message,
      fix: "Check the names. What is private needs a token, or the team's connected account.",
    });
  throw new Refused(ASSET.source_unavailable, { message });
}

/** GitHub says 403 or 429 with nothing left; others say 429. */
function isRateLimit({ status, headers }: Fetched): boolean {
  return status === 429 || (status === 403 && headers["x-ratelimit-remaining"] === "0");
}

/** Refuses content that says beforehand that it is too large. */
export async function requireSize(fetched: Fetched, maxBytes: number): Promise<void> {
  if (fetched.declaredBytes === null || fetched.declaredBytes <= maxBytes) return;
  await fetched.discard();
  throw tooLarge(maxBytes);
}

/** A small answer as text; refused as `source_unavailable` when it is longer than any such answer is. */
export async function readText(fetched: Fetched, maxBytes = MAX_JSON_BYTES): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of fetched.body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw odd(fetched.url);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export async function readJson(fetched: Fetched): Promise<unknown> {
  const text = await readText(fetched);
  try {
    return JSON.parse(text);
  } catch {
    throw odd(fetched.url); // what was no JSON may be anything, so it is not told
  }
}

/** For an answer that is not of the kind that its service gives. */
export function odd(url: URL): Refused {
  return new Refused(ASSET.source_unavailable, { message: `${url.hostname} gave an answer that is not understood.` });
}

/** A commit's name, or a refusal. */
export function requireRevision(text: unknown, url: URL): string {
  if (typeof text !== "string" || !/^[0-9a-f]{40,64}$/.test(text)) throw odd(url);
  return text;
}
