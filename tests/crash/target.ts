import type { Deployment } from "../support/deployment.ts";
import type { Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { apartVictim, type ProcessVictim } from "./process-victims.ts";
import { aimAt, type PlatformVictim, type Victim } from "./victims.ts";

export type VictimName = PlatformVictim | ProcessVictim;

/** What is lived on and killed: a platform in one process, or one whose roles are processes of their own. */
export interface Target {
  readonly admin: PlatformClient;
  readonly databaseUrl: string;
  sql<T>(text: string, values?: unknown[]): Promise<T[]>;
  /** Looks for a victim while it lives; `mark` is a word of the guests that may be hit. */
  aim(victim: VictimName, mark: string, random: (below: number) => number): Victim;
  /** The process that holds guests now. */
  hostAgentPid(): number;
  lastOutput(): string;
}

export function inOneProcess(platform: Platform): Target {
  return {
    get admin() {
      return platform.admin;
    },
    get databaseUrl() {
      return platform.databaseUrl;
    },
    sql: (text, values) => platform.sql(text, values),
    aim: (victim, mark, random) => aimAt(victim as PlatformVictim, platform, mark, random),
    hostAgentPid: () => platform.hostAgent().pid,
    lastOutput: () => platform.lastOutput(),
  };
}

export function apart(deployment: Deployment): Target {
  return {
    admin: deployment.admin(),
    databaseUrl: deployment.environment().DATABASE_URL!,
    sql: (text, values) => deployment.sql(text, values),
    aim: (victim, _mark, random) => apartVictim(victim as ProcessVictim, deployment, random),
    hostAgentPid: () => deployment.hostAgents()[0]!.pid,
    lastOutput: () => deployment.lastOutput(),
  };
}
