import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type Marker, MarkerLines } from "./marker-lines.ts";
import { Redactor, type SecretAutomaton } from "./redact.ts";

/** After this long without output, text that is most likely no secret is let go. */
const IDLE_MS = 100;
/** How long a pipe may stay open and silent after the last process of its guest. */
const SILENCE_MS = 2_000;
/** Most that is read of one stream in a window: 50 MB a second. */
const WINDOW_MS = 20;
const WINDOW_BYTES = 1024 * 1024;
/** Log bytes that may wait for the disk before the guest's pipes are left full. */
const PENDING_BYTES = 4 * 1024 * 1024;

export interface CaptureSink {
  /** Redacted bytes, both streams in order of arrival. */
  log(bytes: Buffer): void;
  marker(marker: Marker): void;
  pendingBytes(): number;
  relieved(): Promise<void>;
}

/**
 * Reads both output pipes of a guest until they end. Each stream is redacted by itself, so that a secret that two writes
 * of one stream carry is found although the other stream's bytes come between; stdout is searched for marker lines
 * after that, so a marker can't carry a secret out either. Then the two are merged as they arrive.
 */
export async function capture(
  streams: { stdout: Readable; stderr: Readable },
  secrets: SecretAutomaton,
  sink: CaptureSink,
): Promise<void> {
  const markers = new MarkerLines((marker) => sink.marker(marker));
  await Promise.all([
    captureStream(streams.stdout, new Redactor(secrets), sink, (bytes) => markers.push(bytes)),
    captureStream(streams.stderr, new Redactor(secrets), sink, () => {}),
  ]);
}

/**
 * Waits for the end of a capture whose guest is gone. All writers are dead, so both pipes end by themselves; only a
 * process that escaped an unisolated guest may hold one open, and is not waited for once it is silent.
 */
export async function untilDrained(
  streams: { stdout: Readable; stderr: Readable },
  captured: Promise<void>,
): Promise<void> {
  const both = [streams.stdout, streams.stderr];
  const timer = setTimeout(() => {
    for (const stream of both) stream.destroy();
  }, SILENCE_MS);
  for (const stream of both) stream.on("data", () => timer.refresh());
  await captured;
  clearTimeout(timer);
}

function captureStream(
  stream: Readable,
  redactor: Redactor,
  sink: CaptureSink,
  look: (bytes: Buffer) => void,
): Promise<void> {
  let idle: NodeJS.Timeout | undefined;
  const pace = new Pace();
  const pass = (bytes: Buffer) => {
    if (bytes.length === 0) return;
    look(bytes);
    sink.log(bytes);
  };
  return new Promise((resolve) => {
    let over = false;
    const finish = () => {
      if (over) return;
      over = true;
      clearTimeout(idle);
      pass(redactor.end());
      resolve();
    };
    stream.on("data", (chunk: Buffer) => {
      clearTimeout(idle);
      pass(redactor.push(chunk));
      if (redactor.heldBytes > 0) idle = setTimeout(() => pass(redactor.idle()), IDLE_MS);
      const full = sink.pendingBytes() >= PENDING_BYTES;
      const restMs = pace.restMs(chunk.length);
      if (!full && restMs === 0) return;
      stream.pause();
      void Promise.all([full ? sink.relieved() : null, sleep(restMs)]).then(() => stream.resume());
    });
    // An empty pipe ends unread: a guest that is gone by now has told so before anybody listened.
    if (stream.readableEnded || stream.destroyed) return finish();
    // A pipe of our own fails only when it is destroyed, which is after the guest's end; `close` may then come alone.
    stream.once("end", finish).once("error", finish).once("close", finish);
  });
}

/** Keeps one guest that prints without end from taking the host agent's whole time from the others. */
class Pace {
  #windowStartMs = performance.now();
  #bytes = 0;

  /** How long to leave the pipe alone after `bytes` came. */
  restMs(bytes: number): number {
    const passedMs = performance.now() - this.#windowStartMs;
    if (passedMs >= WINDOW_MS) {
      this.#windowStartMs += passedMs;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes < WINDOW_BYTES ? 0 : Math.max(1, WINDOW_MS - passedMs);
  }
}
