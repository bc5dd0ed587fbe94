import { createHmac } from "node:crypto";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { PostAsk, Posted, PostFailure, PostPort } from "../../infra/net/post-https.ts";
import type { Chance } from "./chance.ts";
import type { HappeningCounter } from "./happenings.ts";

export interface ReceiversOptions {
  /** Of nobody: receivers outlive processes. */
  clock: Clock;
  chance: Chance;
  note(actor: string, action: string, outcome: string): void;
  count: HappeningCounter["count"];
}

/** How badly receivers behave, each as a chance in [0, 1]. */
export interface Moods {
  /** Nothing arrives. */
  away: number;
  /** It answers with an error, or a redirect. */
  refuses: number;
  /** It takes what it refuses. */
  lies: number;
  /** It takes longer than anybody waits. */
  slow: number;
  /** It takes what was sent and its answer is lost. */
  mute: number;
  /** It wants no more, for good. */
  leaves: number;
}

export const WELL: Moods = { away: 0, refuses: 0, lies: 0, slow: 0, mute: 0, leaves: 0 };

interface Hook {
  secret: string;
  /** It may refuse for good. */
  mayLeave: boolean;
  /** True time since when nothing may be sent there; null while something may. */
  closedAtMs: number | null;
}

/** What was taken before somebody was told of the end may be on its way. */
const ON_ITS_WAY_MS = 1_000;
const REFUSALS = [302, 400, 429, 500, 503];

/** The receivers of all webhooks: they check what they are sent, remember what they took, and behave as told. */
export class Receivers implements PostPort {
  moods: Moods = WELL;
  /** Deliveries that some receiver has taken. */
  readonly taken = new Set<string>();
  /** What must not have been sent as it was. */
  readonly wrong: string[] = [];
  readonly #options: ReceiversOptions;
  readonly #hooks = new Map<string, Hook>();
  readonly #bodies = new Map<string, string>();

  constructor(options: ReceiversOptions) {
    this.#options = options;
  }

  /** Something may be sent to this address from now on. */
  open(url: string, secret: string, mayLeave: boolean): void {
    this.#hooks.set(url, { secret, mayLeave, closedAtMs: null });
  }

  /** The owner was told that nothing is sent there any more. */
  close(url: string): void {
    const hook = this.#hooks.get(url);
    if (hook) hook.closedAtMs ??= this.#options.clock.monotonicMs();
  }

  async post(ask: PostAsk): Promise<Posted> {
    const { note, clock, chance } = this.#options;
    const id = ask.headers["x-nodus-delivery"]!;
    const hook = this.#hooks.get(ask.url);
    this.#check(ask, id, hook);
    const posted = await this.#answer(ask, id, hook);
    if (posted.outcome === "answered") await clock.sleep(chance.between(1, 300));
    note("receiver", id, posted.outcome === "answered" ? String(posted.status) : posted.failure);
    return posted;
  }

  async #answer({ timeoutMs }: PostAsk, id: string, hook: Hook | undefined): Promise<Posted> {
    const { chance, clock } = this.#options;
    const { away, refuses, lies, slow, mute, leaves } = this.moods;
    if (chance.happens(away)) {
      await clock.sleep(chance.between(1, timeoutMs));
      return this.#failed("nothing arrived", "connection_failed");
    }
    if (hook?.mayLeave && chance.happens(leaves)) return this.#said("wants no more", 410);
    if (chance.happens(refuses)) {
      const lied = chance.happens(lies);
      if (lied) this.#take(id);
      return this.#said(lied ? "refused what it took" : "refused", chance.pick(REFUSALS));
    }
    this.#take(id);
    if (chance.happens(slow)) {
      await clock.sleep(timeoutMs);
      return this.#failed("too slow", "timeout");
    }
    if (chance.happens(mute)) return this.#failed("answer lost", "connection_failed");
    return this.#said("took it", chance.pick([200, 202, 204]));
  }

  #take(id: string): void {
    if (this.taken.has(id)) this.#options.count("receivers", "took it again");
    this.taken.add(id);
  }

  #said(what: string, status: number): Posted {
    this.#options.count("receivers", what);
    return { outcome: "answered", status, body: Buffer.alloc(0) };
  }

  #failed(what: string, failure: PostFailure): Posted {
    this.#options.count("receivers", what);
    return { outcome: "failed", failure };
  }

  #check({ url, headers, body }: PostAsk, id: string, hook: Hook | undefined): void {
    const text = Buffer.from(body).toString("utf8");
    const wrong = (sentence: string) => {
      this.wrong.push(`not true: ${sentence}: ${id} to ${url}`);
    };
    if (!hook) {
      wrong("what is sent goes where a team wants it");
      return;
    }
    const nowMs = this.#options.clock.monotonicMs();
    if (hook.closedAtMs !== null && nowMs > hook.closedAtMs + ON_ITS_WAY_MS)
      wrong("nothing is sent to a webhook that is gone");
    const signed = createHmac("sha256", hook.secret).update(`${headers["x-nodus-timestamp"]}.${text}`).digest("hex");
    if (!headers["x-nodus-signature"]?.endsWith(signed)) wrong("what is sent is signed");
    if (JSON.parse(text).delivery_id !== id) wrong("a delivery names itself");
    if (text !== (this.#bodies.get(id) ?? text)) wrong("a delivery has the same bytes each time");
    this.#bodies.set(id, text);
  }
}
