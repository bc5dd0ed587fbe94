import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import type { PlatformClient } from "../support/platform-client.ts";
import { processesWith } from "../support/process-table.ts";
import { until } from "../support/until.ts";
import { cancel, script, submit, type WorkloadState } from "../support/workloads.ts";

/** How a workload of the population is to end when nothing is lost. */
type Fate = "completes" | "fails" | "is cancelled" | "waits";

/** A workload whose end is known beforehand. */
export interface Inhabitant {
  readonly fate: Fate;
  readonly key: string;
  readonly workload: object;
  /** Unique word of its processes, so that two generations at once are seen. */
  readonly mark: string;
  /** The whole log of a generation that is not cut short. */
  readonly log: string;
  /** Known once a submit was answered. */
  id: string | null;
}

const TICKS = 8;
const TICKS_TEXT = Array.from({ length: TICKS }, (_, n) => `tick ${n}\n`).join("");
const ticks = `i=0; while [ $i -lt ${TICKS} ]; do echo tick $i; i=$((i+1)); sleep 0.1; done`;

/** Workloads of every kind of life, each with a word of its own. */
export function population(word: string): Inhabitant[] {
  const inhabitant = (fate: Fate, body: string, log: string, more: object = {}): Inhabitant => {
    const mark = `${word}-${randomUUID()}`;
    const workload = script(`export MARK=${mark}; ${body}`, { ...more });
    return { fate, key: randomUUID(), workload, mark, log, id: null };
  };
  const saves = "mkdir -p outputs state; echo kept > state/kept; echo result > outputs/result.txt";
  return [
    inhabitant("completes", `${ticks}; ${saves}`, TICKS_TEXT),
    inhabitant("completes", "echo short", "short\n"),
    inhabitant("fails", `${ticks}; exit 3`, TICKS_TEXT),
    inhabitant("is cancelled", "trap '' TERM; echo up; while :; do sleep 0.2; done", "up\n"),
    inhabitant("waits", "echo never", "", { requirements: { gpu: "B200" } }),
  ];
}

/** Submits until it is answered; the key makes it once however often that takes. */
export async function submitted(client: PlatformClient, one: Inhabitant): Promise<string> {
  const id = await stubbornly(() => submit(client, one.workload, one.key));
  if (one.id !== null && one.id !== id) throw new Error(`one key made two workloads, ${one.id} and ${id}`);
  one.id = id;
  return id;
}

/** Asks for the end until that is answered. */
export async function cancelled(client: PlatformClient, one: Inhabitant): Promise<void> {
  await stubbornly(() => cancel(client, one.id!));
}

/** As a client does that is cut off or told to come again: once more, and no longer than a minute. */
function stubbornly<T>(ask: () => Promise<T>): Promise<NonNullable<Exclude<T, false>> | T> {
  return until(
    "it is answered",
    () =>
      ask()
        .then((answer) => ({ answer }))
        .catch(retriable),
    {
      timeoutMs: 60_000,
      everyMs: 100,
    },
  ).then(({ answer }) => answer);
}

/** Cut off, or told to repeat the request: by the code of a refusal, or by the words of one that has none. */
const RETRIABLE = /fetch failed|terminated|other side closed|cannot be reached|did not answer|just now|answered 503/i;
/** Close codes of sockets that speak of the moment and not of the request: no greeting in time, too many streams. */
const TRANSIENT_CLOSE: ReadonlySet<unknown> = new Set([4408, 4429]);

function retriable(error: unknown): null {
  if (!isRetriable(error)) throw error;
  return null;
}

/** Whether the request may be sent again: it was cut off, or refused with the advice to repeat it. */
export function isRetriable(error: unknown): boolean {
  if (TRANSIENT_CLOSE.has((error as { code?: unknown } | null)?.code)) return true;
  return RETRIABLE.test(inspect(error)); // streams fail with lists of errors
}

/** Trees of processes of the inhabitant that live now: more than one would be a workload that runs twice. */
export function treesOf({ mark }: Inhabitant): number {
  const processes = processesWith(mark);
  const pids = new Set(processes.map(({ pid }) => pid));
  return processes.filter(({ parent }) => !pids.has(parent)).length;
}

/** What an end says against the inhabitant's fate; null when it is as it has to be. `mayLose`: generations may be lost. */
export function complaint(one: Inhabitant, end: WorkloadState, mayDieOfIt: boolean): string | null {
  const { status, reason, exitCode } = end;
  const said = `${one.fate}: ${JSON.stringify({ id: one.id, status, reason, exitCode, message: end.message })}`;
  if (one.fate === "waits" || one.fate === "is cancelled") {
    const died = mayDieOfIt && status === "failed" && reason === "signalled";
    return status === "cancelled" || died ? null : said;
  }
  const asMeant = one.fate === "completes" ? status === "completed" && exitCode === 0 : exitCode === 3;
  const died = mayDieOfIt && status === "failed" && ["signalled", "start_failed"].includes(reason);
  return asMeant || died ? null : said;
}
