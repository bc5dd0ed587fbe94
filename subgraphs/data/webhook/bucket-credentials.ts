import type { Database } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { PostPort } from "../../../infra/net/post-https.ts";
import type { Attempt, AttemptError } from "../delivery/attempt.ts";
import { signedAttempt } from "../delivery/signed-attempt.ts";
import type {
  BucketCredentials,
  BucketCredentialsAnswer,
  BucketCredentialsAsk,
  BucketCredentialsPort,
} from "../published.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { readBucketAnswer } from "./bucket-answer.ts";
import { type WebhookTarget, webhookTarget } from "./webhook.commands.ts";

export interface BucketCredentialsDeps {
  db: Database;
  box: SecretBox;
  poster: PostPort;
  clock: Clock;
  /** A number in [0, 1), for the waits. */
  random: () => number;
}

const EVENT_TYPE = "bucket_credentials.requested";
/** Waits before the second and the third try, before jitter. */
const WAITS_MS = [1_000, 4_000];

/** One try and what it gave. */
interface Tried {
  attempt: Attempt;
  credentials: BucketCredentials | null;
}

/**
 * Asks receivers for credentials. What they answer is handed to the caller and kept nowhere: the delivery list shows the
 * request's id, states and times alone.
 */
export class BucketCredentialRequests implements BucketCredentialsPort {
  readonly #deps: BucketCredentialsDeps;

  constructor(deps: BucketCredentialsDeps) {
    this.#deps = deps;
  }

  async request(ask: BucketCredentialsAsk, signal: AbortSignal): Promise<BucketCredentialsAnswer> {
    const { db, box, clock } = this.#deps;
    const requestId = newId("delivery", clock.now());
    const begunAt = clock.now();
    const body = requestBody(requestId, ask);
    const attempts: Attempt[] = [];
    let credentials: BucketCredentials | null = null;
    while (!credentials && attempts.length < LIMITS.bucketCredentialsTries) {
      if (attempts.length > 0) await this.#pause(attempts.length, signal);
      const target = await webhookTarget(db, box, ask.tenantId);
      if (!target || signal.aborted) break;
      const tried = await this.#try(target, { requestId, body, number: attempts.length + 1, uri: ask.uri }, signal);
      attempts.push(tried.attempt);
      credentials = tried.credentials;
      if (tried.attempt.error === "gone") break;
    }
    const error = credentials ? null : (attempts.at(-1)?.error ?? (signal.aborted ? "interrupted" : "webhook_off"));
    await this.#note(ask.tenantId, { requestId, begunAt, attempts, error });
    return credentials ? { outcome: "granted", credentials } : { outcome: "unavailable", error: error! };
  }

  async #try(
    target: WebhookTarget,
    { requestId, body, number, uri }: { requestId: string; body: string; number: number; uri: string },
    signal: AbortSignal,
  ): Promise<Tried> {
    const { poster, clock } = this.#deps;
    const now = clock.now();
    const startedMs = clock.monotonicMs();
    const message = { deliveryId: requestId, eventType: EVENT_TYPE, attempt: number, body };
    const maxAnswerBytes = LIMITS.bucketCredentialsAnswerBytes;
    const posted = await poster.post(signedAttempt(target, message, { now, maxAnswerBytes, signal }));
    const tried = (
      status: number | null,
      error: AttemptError | null,
      credentials: BucketCredentials | null,
    ): Tried => ({
      attempt: {
        number,
        at: now.toISOString(),
        durationMs: Math.round(clock.monotonicMs() - startedMs),
        status,
        error,
      },
      credentials,
    });
    if (posted.outcome === "failed") return tried(null, posted.failure, null);
    const { status } = posted;
    if (status === 410) return tried(status, "gone", null);
    if (status >= 300 && status < 400) return tried(status, "redirected", null);
    if (status < 200 || status > 299) return tried(status, "refused", null);
    const scheme = uri.startsWith("gs://") ? "gs" : "s3";
    const credentials = readBucketAnswer(scheme, posted.body.toString("utf8"), clock.now());
    return tried(status, credentials ? null : "invalid_answer", credentials);
  }

  #pause(failures: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    return clock.sleep((WAITS_MS[failures - 1] ?? 0) * (0.8 + random() / 5), signal);
  }

  /** For the delivery list; nothing of the request or the answer. */
  async #note(
    tenantId: string,
    outcome: { requestId: string; begunAt: Date; attempts: Attempt[]; error: AttemptError | null },
  ): Promise<void> {
    const { requestId, begunAt, attempts, error } = outcome;
    await this.#deps.db.sql(
      `insert into data.webhook_delivery (id, tenant_id, event_id, event_type, body, state, attempts, tries, attempt_log,
         retries_until, last_error, created_at, ended_at)
       values ($1, $2, null, $3, null, $4, $5, $5, $6, $7, $8, $7, $9)`,
      [
        ...[requestId, tenantId, EVENT_TYPE, error ? "failed" : "delivered", attempts.length, JSON.stringify(attempts)],
        ...[begunAt, error, this.#deps.clock.now()],
      ],
    );
  }
}

function requestBody(requestId: string, ask: BucketCredentialsAsk): string {
  return JSON.stringify({
    request_id: requestId,
    event_type: EVENT_TYPE,
    workload_id: ask.workloadId,
    stage_id: ask.stageId,
    generation: ask.generation,
    input: ask.input,
    uri: ask.uri,
    region: ask.region,
    bytes: ask.bytes,
    sha256: ask.sha256,
  });
}
