import { Agent, type Dispatcher } from "undici";
import { guardedLookup, PrivateAddress, requirePublicLiteral } from "./guarded-lookup.ts";
import type { PrivateExceptions } from "./public-address.ts";
import { type TlsFailure, tlsFailure } from "./tls-failure.ts";

/** Why nothing came, in words that carry no value of the request. */
export type FetchFailure =
  | "not_https"
  | "private_address"
  | "too_many_redirects"
  | "untrusted_certificate"
  | "timeout"
  | "unknown_name"
  | "unreachable";

/** A fetch that failed, or broke off in the middle of a body. */
export class FetchFailed extends Error {
  override readonly name = "FetchFailed";
  readonly failure: FetchFailure;
  /** The machine that was asked last; never a path or a query, which may carry credentials. */
  readonly hostname: string;

  constructor(failure: FetchFailure, hostname: string, cause?: unknown) {
    super(`${hostname}: ${failure}`, { cause });
    this.failure = failure;
    this.hostname = hostname;
  }
}

/** One GET. */
export interface FetchAsk {
  /** The `authorization` header; sent to the first origin only. */
  readonly authorization?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends it at any time; its reason is then what is thrown. */
  readonly signal: AbortSignal;
}

/** An answer whose body has not been read. Read the body to its end or `discard` it. */
export interface Fetched {
  readonly status: number;
  /** By lower-case name; the first value of a repeated header. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Where the answer came from, after redirects. */
  readonly url: URL;
  /** What content-length says; null when it says nothing. */
  readonly declaredBytes: number | null;
  /** Throws `FetchFailed` where the other side breaks off or stalls. */
  readonly body: AsyncIterable<Uint8Array>;
  discard(): Promise<void>;
}

/** Gets what a tenant names from the public internet. */
export interface FetchPort {
  /** @throws FetchFailed, or the signal's reason; any HTTP status is an answer */
  get(url: URL, ask: FetchAsk): Promise<Fetched>;
}

export interface FetchOptions {
  exceptions: PrivateExceptions;
  /** Certificate authorities to trust instead of the public ones, in PEM. */
  ca?: string;
  /** Longest silence of the other side, in milliseconds. */
  idleMs?: number;
  /** Redirects that are followed for one `get`. */
  redirects?: number;
}

const IDLE_MS = 30_000;
const CONNECT_MS = 10_000;
const REDIRECTS = 5;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);

/**
 * The one way out for fetches on behalf of tenants: HTTPS with a verified certificate, no address that tenants must not
 * reach (judged where the connection is made, at every hop), a bounded number of redirects that never carry credentials
 * to another origin, and an end to every silence.
 */
export function openFetch(options: FetchOptions): FetchPort & { close(): Promise<void> } {
  const { exceptions, idleMs = IDLE_MS, redirects = REDIRECTS } = options;
  const agent = new Agent({
    connect: {
      lookup: guardedLookup(exceptions),
      timeout: Math.min(CONNECT_MS, idleMs),
      ...(options.ca ? { ca: options.ca } : {}),
    },
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
    keepAliveTimeout: 5_000,
  });
  const hop = async (url: URL, ask: FetchAsk): Promise<Dispatcher.ResponseData> => {
    ask.signal.throwIfAborted();
    try {
      if (url.protocol !== "https:") throw new FetchFailed("not_https", url.hostname);
      requirePublicLiteral(url.hostname, exceptions);
      return await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: "GET",
        signal: ask.signal,
        headers: {
          "user-agent": "nodus",
          "accept-encoding": "identity",
          ...ask.headers,
          ...(ask.authorization ? { authorization: ask.authorization } : {}),
        },
      });
    } catch (error) {
      throw failureOf(error, url, ask.signal);
    }
  };
  return {
    async get(first, ask) {
      let url = first;
      let authorization = ask.authorization;
      for (let followed = 0; ; followed++) {
        const response = await hop(url, { ...ask, authorization });
        const next = redirectOf(response, url);
        if (!next) return fetched(response, url, ask.signal);
        await response.body.dump({ limit: 16_384, signal: ask.signal });
        if (followed === redirects) throw new FetchFailed("too_many_redirects", url.hostname);
        if (next.origin !== url.origin) authorization = undefined;
        url = next;
      }
    },
    close: () => agent.destroy(),
  };
}

/** Where an answer sends us; null when it is an answer itself. */
function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: URL): URL | null {
  if (!REDIRECT_STATUSES.has(statusCode)) return null;
  const location = single(headers.location);
  if (location === undefined || !URL.canParse(location, from)) throw new FetchFailed("unreachable", from.hostname);
  return new URL(location, from);
}

function fetched({ statusCode, headers, body }: Dispatcher.ResponseData, url: URL, signal: AbortSignal): Fetched {
  const declared = single(headers["content-length"]);
  return {
    status: statusCode,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, single(value)])),
    url,
    declaredBytes: declared !== undefined && /^\d{1,15}$/.test(declared) ? Number(declared) : null,
    body: watched(body as AsyncIterable<Uint8Array>, url, signal),
    discard: async () => {
      body.on("error", () => {}); // destroying it before its end is what we ask for here
      body.destroy();
    },
  };
}

async function* watched(body: AsyncIterable<Uint8Array>, url: URL, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw failureOf(error, url, signal);
  }
}

const TIMEOUTS = new Set(["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);
const NO_ADDRESS = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_NODATA"]);
const CERTIFICATE: ReadonlySet<TlsFailure | null> = new Set(["other_host", "untrusted"]);

function failureOf(error: unknown, url: URL, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof FetchFailed) return error;
  const codes = codesOf(error);
  if (error instanceof PrivateAddress || codes.includes("PRIVATE_ADDRESS"))
    return new FetchFailed("private_address", url.hostname);
  if (codes.some((code) => TIMEOUTS.has(code))) return new FetchFailed("timeout", url.hostname, error);
  if (codes.some((code) => CERTIFICATE.has(tlsFailure(code))))
    return new FetchFailed("untrusted_certificate", url.hostname, error);
  if (codes.some((code) => NO_ADDRESS.has(code))) return new FetchFailed("unknown_name", url.hostname, error);
  return new FetchFailed("unreachable", url.hostname, error);
}

/** The codes of an error, of its causes, and of the tries that it sums up. */
function codesOf(error: unknown, depth = 0): string[] {
  if (depth > 4 || typeof error !== "object" || error === null) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])].flatMap((one) => codesOf(one, depth + 1));
  return typeof code === "string" ? [code, ...inner] : inner;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
