import { Deployment } from "../support/deployment.ts";
import { Platform } from "../support/platform.ts";
import { redisMissing, type TestRedis, testRedis } from "../support/redis.ts";
import { ends, script, submit } from "../support/workloads.ts";
import { PROCESS_VICTIMS } from "./process-victims.ts";
import { REDIS_VICTIMS } from "./redis-victims.ts";
import { apart, inOneProcess, type Target, type VictimName } from "./target.ts";
import { VICTIMS } from "./victims.ts";

/** A platform that is up, and what was started for it. */
export interface Habitat {
  readonly target: Target;
  /** Ends all of it and removes its files. */
  dispose(): Promise<void>;
}

/** How a platform lies over processes and stores, and who can die in it. */
export interface Layout {
  readonly name: string;
  readonly victims: readonly VictimName[];
  /** Why there is none on this machine; null when there is. */
  readonly missing: string | null;
  /** Starts one whose host agent has run something. */
  begin(): Promise<Habitat>;
}

/** Written to disk at every command, so that one that was killed comes back with all that it had answered for. */
const DURABLE_REDIS = ["--appendonly", "yes", "--appendfsync", "always"];

const onePlatform = async (redis: TestRedis | null): Promise<Habitat> => {
  const platform = await Platform.start(told(redis));
  return { target: inOneProcess(platform, redis), dispose: () => platform.dispose() };
};

const manyProcesses = async (redis: TestRedis | null): Promise<Habitat> => {
  const deployment = await Deployment.start(told(redis));
  return { target: apart(deployment, redis), dispose: () => deployment.dispose() };
};

export const LAYOUTS: readonly Layout[] = [
  { name: "one process", victims: VICTIMS, missing: null, begin: () => inhabited(() => onePlatform(null)) },
  {
    name: "separate processes on Redis",
    victims: [...PROCESS_VICTIMS, ...REDIS_VICTIMS],
    missing: redisMissing(),
    begin: () => withRedis(manyProcesses),
  },
  {
    name: "one process on Redis",
    victims: [...VICTIMS, ...REDIS_VICTIMS],
    missing: redisMissing(),
    begin: () => withRedis(onePlatform),
  },
  {
    name: "separate processes",
    victims: PROCESS_VICTIMS,
    missing: null,
    begin: () => inhabited(() => manyProcesses(null)),
  },
];

function told(redis: TestRedis | null): Record<string, string> {
  return redis ? { REDIS_URL: redis.url } : {};
}

async function withRedis(start: (redis: TestRedis) => Promise<Habitat>): Promise<Habitat> {
  const redis = await testRedis(DURABLE_REDIS);
  try {
    const { target, dispose } = await inhabited(() => start(redis));
    return { target, dispose: () => dispose().finally(() => redis.close()) };
  } catch (error) {
    await redis.close();
    throw error;
  }
}

const FIRST_RUN_MS = 60_000;

async function inhabited(start: () => Promise<Habitat>): Promise<Habitat> {
  const habitat = await start();
  try {
    const { admin } = habitat.target;
    await ends(admin, await submit(admin, script("true")), FIRST_RUN_MS);
    return habitat;
  } catch (error) {
    await habitat.dispose();
    throw error;
  }
}
