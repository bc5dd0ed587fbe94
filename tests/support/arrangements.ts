import { composeProcesses, layoutOf, systemdProcesses } from "./deploy-files.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { Platform } from "./platform.ts";
import type { PlatformClient } from "./platform-client.ts";
import { redisMissing, testRedis } from "./redis.ts";

/** A platform that runs, however its parts are spread over processes. */
export interface Arranged {
  readonly admin: PlatformClient;
  /** Processes that may be killed while a stream is read and work runs. */
  readonly victims: readonly string[];
  /** `kill -9` of a process. */
  kill(victim: string): Promise<void>;
  /** Starts it again; resolves once it is ready. */
  revive(victim: string): Promise<void>;
  /** Stops the processes that answer and work in good order, and starts them again; the exit codes of the stopped. */
  restart(): Promise<(number | null)[]>;
  sql<T>(text: string): Promise<T[]>;
  lastOutput(): string;
  dispose(): Promise<void>;
}

/** A way in which the platform can be run. */
export interface Arrangement {
  readonly name: string;
  /** Why it can't be run on this machine; null when it can. */
  missing(): string | null;
  start(): Promise<Arranged>;
}

/** What the same journeys have to work on: everything in one process or apart, on PostgreSQL alone or with Redis. */
export const ARRANGEMENTS: readonly Arrangement[] = [
  { name: "one process", missing: () => null, start: () => inOneProcess({}) },
  { name: "one process on Redis", missing: redisMissing, start: () => withRedis(inOneProcess) },
  {
    name: "separate processes, as the systemd units have them",
    missing: () => null,
    start: () => apart(layoutOf(systemdProcesses()), ["graph", "gateway", "intake", "worker"], {}),
  },
  {
    name: "separate processes on Redis, as compose.yaml has them",
    missing: redisMissing,
    start: () =>
      withRedis((settings) =>
        apart(layoutOf(composeProcesses()), ["compute", "gateway", "intake", "worker"], settings),
      ),
  },
];

async function inOneProcess(settings: Record<string, string>): Promise<Arranged> {
  const platform = await Platform.start(settings);
  return {
    admin: platform.admin,
    victims: ["platform"],
    kill: () => platform.kill(),
    revive: () => platform.start(),
    restart: async () => {
      const code = await platform.stop();
      await platform.start();
      return [code];
    },
    sql: (text) => platform.sql(text),
    lastOutput: () => platform.lastOutput(),
    dispose: () => platform.dispose(),
  };
}

async function apart(
  layout: Layout<string>,
  victims: readonly string[],
  settings: Record<string, string>,
): Promise<Arranged> {
  const deployment = await Deployment.laidOut(layout, settings);
  const restarted = victims.filter((name) => name !== "intake");
  return {
    admin: deployment.admin("gateway"),
    victims,
    kill: async (victim) => void (await deployment.end(victim)),
    revive: (victim) => deployment.start(victim),
    restart: async () => {
      const codes = await Promise.all(restarted.map((name) => deployment.end(name, "SIGTERM")));
      await Promise.all(restarted.map((name) => deployment.start(name)));
      return codes;
    },
    sql: (text) => deployment.sql(text),
    lastOutput: () => deployment.lastOutput(),
    dispose: () => deployment.dispose(),
  };
}

async function withRedis(start: (settings: Record<string, string>) => Promise<Arranged>): Promise<Arranged> {
  const redis = await testRedis();
  try {
    const arranged = await start({ REDIS_URL: redis.url });
    return {
      ...arranged,
      dispose: async () => {
        await arranged.dispose();
        await redis.close();
      },
    };
  } catch (error) {
    await redis.close();
    throw error;
  }
}
