import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Deployment, PROCESS_NAMES, type ProcessName } from "../support/deployment.ts";
import { killAll } from "../support/process-table.ts";
import { guestVictim, isReady, type Victim } from "./victims.ts";

/**
 * What dies where roles are processes of their own: one of them, both workers, the agent that
 * holds guests, everything that serves and works, a guest, or every connection to the database.
 */
export const PROCESS_VICTIMS = [
  "compute",
  "others",
  "intake",
  "worker",
  "both workers",
  "gateway",
  "gateway-2",
  "host-agent",
  "guest host",
  "all",
  "guest",
  "connections",
] as const;
export type ProcessVictim = (typeof PROCESS_VICTIMS)[number];

/** A victim among separate processes: nobody but the test starts them again. */
export function apartVictim(
  name: ProcessVictim,
  deployment: Deployment,
  mark: string,
  random: (below: number) => number,
): Victim {
  const ready = () => isReady(deployment.admin());
  switch (name) {
    case "guest":
      return guestVictim(mark, random, ready);
    case "guest host": {
      const agents = deployment.hostAgents();
      return { strike: () => killAll(agents), recover: ready };
    }
    case "connections":
      return cutOff(deployment.environment().DATABASE_URL!, ready);
    default:
      return killed(processesOf(name), deployment, random);
  }
}

function killed(names: readonly ProcessName[], deployment: Deployment, random: (below: number) => number): Victim {
  return {
    strike: () => {
      for (const one of names) deployment.signal(one, "SIGKILL");
    },
    recover: async () => {
      await Promise.all(names.map((one) => deployment.end(one)));
      await sleep(random(800));
      await Promise.all(names.map((one) => deployment.start(one)));
    },
  };
}

const CUT_OFF = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

/** Every connection of the platform to its database breaks, as when another server takes over. */
function cutOff(databaseUrl: string, ready: () => Promise<void>): Victim {
  const own = new pg.Client({ connectionString: databaseUrl });
  const connected = own.connect();
  connected.catch(() => {}); // told when it is waited for
  let done: Promise<unknown> = connected;
  return {
    strike: () => {
      done = own.query(CUT_OFF); // waits for `connect` by itself
      done.catch(() => {}); // as above
    },
    recover: async () => {
      await done;
      await own.end();
      await ready();
    },
  };
}

function processesOf(name: Exclude<ProcessVictim, "guest host" | "guest" | "connections">): readonly ProcessName[] {
  if (name === "both workers") return ["worker", "worker-2"];
  if (name === "all") return PROCESS_NAMES.filter((one) => one !== "host-agent");
  return [name];
}
