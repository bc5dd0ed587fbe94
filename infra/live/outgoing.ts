import { EVERY_TOPIC } from "./wakeups.ts";

/** Announcements of one process wait this long for company. */
const COALESCE_MS = 5;
/** Pause before a message that could not be sent is tried again. */
const RETRY_MS = 500;
/** PostgreSQL refuses notifications of 8,000 bytes or more. */
const MESSAGE_BYTES = 7_900;
/** More unsent topics than this are sent as one wake-up of everybody. */
const MOST_UNSENT = 5_000;
/** Topics are joined by spaces. What is no topic wakes everybody: too often is harmless, never is not. */
const WELL_FORMED = /^[!-~]{1,500}$/;

/** Topics that have been announced and not yet sent: each once, in few messages, kept while the line is down. */
export class Outgoing {
  readonly #send: (message: string) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #unsent = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #sending: Promise<void> = Promise.resolve();
  #line: "up" | "down" | "closed" = "up";

  /**
   * @param send sends one message; when it rejects the topics are kept and tried again
   * @param onError hears of each rejection
   */
  constructor(send: (message: string) => Promise<void>, onError: (error: unknown) => void) {
    this.#send = send;
    this.#onError = onError;
  }

  add(topic: string): void {
    if (this.#line === "closed") return;
    if (this.#unsent.size >= MOST_UNSENT) this.#unsent = new Set([EVERY_TOPIC]);
    this.#unsent.add(WELL_FORMED.test(topic) ? topic : EVERY_TOPIC);
    this.#flushIn(COALESCE_MS);
  }

  /** The line is down: topics are kept. */
  pause(): void {
    if (this.#line === "up") this.#line = "down";
  }

  /** The line is up again: what was kept is sent. */
  resume(): Promise<void> {
    if (this.#line === "down") this.#line = "up";
    return this.flush();
  }

  /** Sends what is unsent. Never rejects. */
  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#sending = this.#sending.then(() => this.#sendUnsent());
    return this.#sending;
  }

  /** Sends what is unsent, then takes no more. */
  async close(): Promise<void> {
    await this.flush();
    this.#line = "closed";
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #flushIn(ms: number): void {
    if (this.#line === "up") this.#timer ??= setTimeout(() => void this.flush(), ms);
  }

  async #sendUnsent(): Promise<void> {
    if (this.#line !== "up") return;
    const topics = [...this.#unsent];
    this.#unsent.clear();
    for (const message of messages(topics)) {
      try {
        await this.#send(message);
      } catch (error) {
        this.#onError(error);
        for (const topic of message.split(" ")) this.#unsent.add(topic);
        this.#flushIn(RETRY_MS);
      }
    }
  }
}

/** Topics joined by spaces into as few messages as their size allows. Topics are ASCII, so a character is a byte. */
export function messages(topics: readonly string[]): string[] {
  const made: string[] = [];
  let message = "";
  for (const topic of topics) {
    if (message && message.length + 1 + topic.length > MESSAGE_BYTES) {
      made.push(message);
      message = "";
    }
    message += message ? ` ${topic}` : topic;
  }
  if (message) made.push(message);
  return made;
}
