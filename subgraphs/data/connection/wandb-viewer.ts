import { Agent } from "undici";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { guardedLookup, requirePublicLiteral } from "../../../infra/net/guarded-lookup.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { ConnectionFailure, type FailureReason, socketReason } from "./connection-failure.ts";

/** Where the Weights & Biases API is. */
export interface WandbOrigin {
  /** Such as `https://api.wandb.ai`. */
  origin: string;
  /** Certificate authority to trust instead of the public ones, in PEM. */
  ca?: string;
}

/** Hosts that a run with the credential needs. */
export const WANDB_HOSTS = ["api.wandb.ai", "files.wandb.ai", "storage.googleapis.com"];

const ANSWER_BYTES = 64 * 1024;
const QUERY = JSON.stringify({ query: "query Viewer { viewer { id username } }" });

/** Asks the API whose key it is; throws `ConnectionFailure` unless it is somebody's. */
export async function askViewer(
  deps: { exceptions: PrivateExceptions; clock: Clock; wandb: WandbOrigin },
  apiKey: string,
  timeoutMs: number,
): Promise<void> {
  const { exceptions, clock, wandb } = deps;
  const agent = new Agent({
    connect: { lookup: guardedLookup(exceptions), ...(wandb.ca ? { ca: wandb.ca } : {}) },
    pipelining: 0,
  });
  const over = new AbortController();
  const finished = new AbortController();
  void clock.sleep(timeoutMs, finished.signal).then(() => over.abort());
  try {
    requirePublicLiteral(new URL(wandb.origin).hostname, exceptions);
    const { statusCode, body } = await agent.request({
      origin: wandb.origin,
      path: "/graphql",
      method: "POST",
      headers: {
        authorization: `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`,
        "content-type": "application/json",
        "user-agent": "nodus",
      },
      body: QUERY,
      signal: over.signal,
    });
    const reason = statusCode === 200 ? judge(await readAtMost(body, ANSWER_BYTES)) : statusReason(statusCode);
    if (reason) throw new ConnectionFailure(reason);
  } catch (error) {
    if (error instanceof ConnectionFailure) throw error;
    if (over.signal.aborted) throw new ConnectionFailure("timeout");
    throw new ConnectionFailure(failureReason(error));
  } finally {
    finished.abort();
    agent.destroy().catch(() => {}); // what is still under way is of no use
  }
}

/** Null when the answer names a viewer. */
function judge(text: string): FailureReason | null {
  try {
    const { data } = JSON.parse(text) as { data?: { viewer?: { id?: unknown } | null } | null };
    if (data === undefined || data === null) return "database_refused";
    return typeof data.viewer?.id === "string" ? null : "credentials_rejected";
  } catch {
    return "database_refused"; // no GraphQL: its text must not be repeated
  }
}

function statusReason(status: number): FailureReason {
  if (status === 401 || status === 403) return "credentials_rejected";
  return status >= 500 ? "unreachable" : "database_refused";
}

function failureReason(error: unknown): FailureReason {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (String(code).startsWith("UND_ERR_") && String(code).endsWith("_TIMEOUT")) return "timeout";
  return socketReason(error) ?? (cause ? failureReason(cause) : "unreachable");
}

async function readAtMost(body: AsyncIterable<Uint8Array>, bytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.byteLength;
    if (length > bytes) throw new ConnectionFailure("database_refused");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
