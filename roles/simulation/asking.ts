import { type Actor, SCOPES } from "../../infra/kernel/actor.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { Chance } from "./chance.ts";
import type { HappeningCounter } from "./happenings.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

export interface AskingOptions {
  /** Of nobody: customers outlive processes. */
  clock: Clock;
  chance: Chance;
  /** The process that a request gets to; null when none answers. */
  route(): SimulatedProcess | null;
  note(actor: string, action: string, outcome: string): void;
  count: HappeningCounter["count"];
}

/** Wait before a request that was not answered is sent again. */
const RETRY_MS = 2_000;

/** Asks some process until one answers; a refusal is an answer. */
export async function ask(
  { route, note, clock, count }: AskingOptions,
  what: string,
  request: (process: SimulatedProcess) => Promise<string>,
): Promise<void> {
  for (;;) {
    const process = route();
    const answer = process ? await answerOf(process, request) : null;
    note("tenant", what, answer ?? "no answer");
    if (answer?.startsWith("refused: ")) count("customers", answer);
    if (answer !== null) return;
    count("customers", "not answered");
    await clock.sleep(RETRY_MS);
  }
}

/** Null when the process died or lost its database over it: whoever asked cannot know whether it was done. */
async function answerOf(
  process: SimulatedProcess,
  request: (process: SimulatedProcess) => Promise<string>,
): Promise<string | null> {
  try {
    const answer = await request(process);
    return process.alive ? answer : null;
  } catch (error) {
    if (error instanceof Refused && error.kind.status < 500) return `refused: ${error.kind.code}`;
    if (process.alive && !isLost(error) && !(error instanceof Refused)) throw error;
    return null;
  }
}

function isLost(error: unknown): boolean {
  return error instanceof Error && (error.name === "LostConnection" || error.name === "SimulatedDeath");
}

/** Somebody of a team who may do everything. */
export function memberOf(tenantId: string): Actor {
  const member = { memberId: `mem_${tenantId}`, email: `${tenantId}@example.com`, name: tenantId };
  return { tenantId, keyId: `key_${tenantId}`, ...member, role: "admin", scopes: SCOPES };
}
