import type { Script, ScriptStep, Scripts } from "../../infra/drivers/simulated/script.ts";
import type { OrderSpec } from "../../infra/runner/protocol.ts";
import type { Chance } from "./chance.ts";

/** What a simulated guest will do; it is the command that its tenant submits, so that nothing else has to be remembered. */
export interface GuestPlay {
  runMs: number;
  units: number;
  stagingMs: number;
  exitCode: number;
  oom: boolean;
  startFails: boolean;
  ignoresCancel: boolean;
  /** Its machine vanishes after this long, in the first so many generations. */
  diesAfterMs: number;
  dyingGenerations: number;
}

/** Draws what a guest will do. Most of them do well. */
export function drawPlay(chance: Chance): GuestPlay {
  return {
    runMs: chance.weighted([
      [3, chance.between(0, 10_000)],
      [5, chance.between(10_000, 240_000)],
      [1, chance.between(240_000, 1_500_000)],
    ]),
    units: chance.between(0, 4),
    stagingMs: chance.happens(0.2) ? chance.between(0, 90_000) : chance.between(0, 2_000),
    exitCode: chance.happens(0.1) ? chance.between(1, 5) : 0,
    oom: chance.happens(0.03),
    startFails: chance.happens(0.03),
    ignoresCancel: chance.happens(0.2),
    diesAfterMs: chance.between(0, 120_000),
    dyingGenerations: chance.happens(0.1) ? chance.between(1, 5) : 0,
  };
}

/** The command that stands for a play. */
export function commandOf(play: GuestPlay): string[] {
  return ["simulated-guest", JSON.stringify(play)];
}

/** Plays what the command says. */
export const guestScripts: Scripts = (spec) => scriptOf(JSON.parse(spec.command[1]!) as GuestPlay, spec);

function scriptOf(play: GuestPlay, spec: OrderSpec): Script {
  const steps: ScriptStep[] = [{ log: `generation ${spec.generation} begins\n` }];
  const parts = play.units + 1;
  for (let part = 1; part <= parts; part++) {
    steps.push({ waitMs: Math.floor(play.runMs / parts) }, { log: `part ${part}\n` });
    if (part <= play.units) steps.push({ unit: `u${part}`, ms: 1 });
  }
  const dies = spec.generation <= play.dyingGenerations;
  return {
    steps: dies ? [steps[0]!, { waitMs: play.diesAfterMs }, { die: true }] : steps,
    exit: {
      code: play.exitCode,
      oom: play.oom,
      ...(play.startFails ? { startFailure: { kind: "not_found" as const, message: "no such program" } } : {}),
    },
    ignoresCancel: play.ignoresCancel,
    stagingMs: play.stagingMs,
  };
}
