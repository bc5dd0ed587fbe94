import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { guardedLookup, PrivateAddress, requirePublicLiteral } from "./guarded-lookup.ts";
import type { PrivateExceptions } from "./public-address.ts";
import { tlsFailure } from "./tls-failure.ts";

/** Why no answer came, in words that carry nothing of the request or the other side. */
export type PostFailure =
  | "timeout"
  | "name_unknown"
  | "connection_failed"
  | "tls_untrusted"
  | "tls_host_mismatch"
  | "tls_failed"
  | "private_address"
  | "answer_too_large"
  /** The caller's signal ended it. */
  | "interrupted";

/** One POST to an address that a tenant chose. */
export interface PostAsk {
  /** https:// only. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** From the look-up of the name to the end of the answer, as far as it is read. */
  timeoutMs: number;
  /** How much of the answer's body is read; with 0 the status is the whole answer. */
  maxAnswerBytes: number;
  signal: AbortSignal;
}

export type Posted =
  | { outcome: "answered"; status: number; body: Buffer }
  | { outcome: "failed"; failure: PostFailure };

/** Sends what a tenant asked to be sent. Any HTTP status is an answer; never rejects. */
export interface PostPort {
  post(ask: PostAsk): Promise<Posted>;
}

export interface PostOptions {
  exceptions: PrivateExceptions;
  /** Certificate authorities to trust instead of the public ones, in PEM. */
  ca?: string;
}

/**
 * The one way out for posts on behalf of tenants: HTTPS with a verified certificate and host, no address that tenants
 * must not reach (judged where the connection is made), no redirects, a connection of its own for each post.
 */
export function openPost(options: PostOptions): PostPort {
  return {
    post: (ask) =>
      new Promise((resolve) => {
        new Exchange(ask, options, resolve).begin();
      }),
  };
}

class Exchange {
  readonly #ask: PostAsk;
  readonly #options: PostOptions;
  readonly #answer: (posted: Posted) => void;
  #stop: (failure: PostFailure) => void = () => {};
  #timer: NodeJS.Timeout | undefined;

  constructor(ask: PostAsk, options: PostOptions, answer: (posted: Posted) => void) {
    this.#ask = ask;
    this.#options = options;
    this.#answer = answer;
  }

  begin(): void {
    const failure = this.#failureBefore();
    if (failure) this.#settle({ outcome: "failed", failure });
    else this.#send();
  }

  /** What rules the exchange out before anything is sent. */
  #failureBefore(): PostFailure | null {
    if (this.#ask.signal.aborted) return "interrupted";
    try {
      requirePublicLiteral(new URL(this.#ask.url).hostname, this.#options.exceptions);
      return null;
    } catch (error) {
      return failureOf(error);
    }
  }

  #send(): void {
    const { url, headers, body, timeoutMs, signal } = this.#ask;
    const { exceptions, ca } = this.#options;
    const sent = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": String(body.byteLength) },
      agent: false,
      lookup: guardedLookup(exceptions),
      ...(ca ? { ca } : {}),
    });
    this.#stop = (failure) => {
      this.#settle({ outcome: "failed", failure });
      sent.destroy();
    };
    this.#timer = setTimeout(() => this.#stop("timeout"), timeoutMs);
    signal.addEventListener("abort", this.#interrupt, { once: true });
    sent.on("error", (error) => this.#settle({ outcome: "failed", failure: failureOf(error) }));
    sent.on("response", (response) => void this.#read(response).finally(() => sent.destroy()));
    sent.end(body);
  }

  readonly #interrupt = () => this.#stop("interrupted");

  async #read(response: IncomingMessage): Promise<void> {
    const { maxAnswerBytes } = this.#ask;
    const status = response.statusCode ?? 0;
    if (maxAnswerBytes === 0) {
      response.on("error", () => {}); // it is cut off below, and what it still had to say does not matter
      return this.#settle({ outcome: "answered", status, body: Buffer.alloc(0) });
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.byteLength;
        if (bytes > maxAnswerBytes) return this.#settle({ outcome: "failed", failure: "answer_too_large" });
        chunks.push(chunk);
      }
      this.#settle({ outcome: "answered", status, body: Buffer.concat(chunks) });
    } catch (error) {
      this.#settle({ outcome: "failed", failure: failureOf(error) });
    }
  }

  /** The first outcome counts. */
  #settle(posted: Posted): void {
    clearTimeout(this.#timer);
    this.#ask.signal.removeEventListener("abort", this.#interrupt);
    this.#answer(posted);
  }
}

const TLS_FAILURES = { other_host: "tls_host_mismatch", untrusted: "tls_untrusted", failed: "tls_failed" } as const;

function failureOf(error: unknown): PostFailure {
  if (error instanceof PrivateAddress) return "private_address";
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  // Node sums up its tries of several addresses; the first one says as much as any.
  if (typeof code !== "string") return Array.isArray(errors) && errors[0] ? failureOf(errors[0]) : "connection_failed";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "EAI_NODATA") return "name_unknown";
  if (code === "ETIMEDOUT") return "timeout";
  const tls = tlsFailure(code);
  return tls ? TLS_FAILURES[tls] : "connection_failed";
}
