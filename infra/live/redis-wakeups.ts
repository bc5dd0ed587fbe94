import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { quietly } from "../queue/quietly.ts";
import { redisOptions } from "../queue/redis-options.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Outgoing } from "./outgoing.ts";
import { Sleepers, type Wakeups } from "./wakeups.ts";

const CHANNEL = "nodus:wakeups";
const COMMAND_TIMEOUT_MS = 5_000;

/** Wake-ups by Redis publish and subscribe, over two connections of the process. */
export async function openRedisWakeups(url: string, logger: Logger): Promise<Wakeups> {
  const sleepers = new Sleepers((err) => logger.error({ err }, "a sleeper failed when it was woken"));
  const self = randomUUID();
  const speaking = new Redis(url, { ...redisOptions(), maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS });
  const listening = new Redis(url, { ...redisOptions(), maxRetriesPerRequest: null });
  const outgoing = new Outgoing(
    async (message) => void (await speaking.publish(CHANNEL, `${self} ${message}`)),
    (err) => logger.warn({ err }, "a wake-up could not be sent yet"),
  );
  for (const client of [speaking, listening]) {
    client.on("error", quietly(logger, "the line for wake-ups lost Redis"));
  }
  listening.on("message", (_channel: string, message: string) => {
    const [from, ...topics] = message.split(" ");
    if (from === self) return; // woken without the round trip
    for (const topic of topics) sleepers.wake(topic);
  });
  let subscribed = false;
  const first = Promise.withResolvers<void>();
  listening.on("close", () => {
    subscribed = false;
  });
  listening.on("ready", () => {
    // Subscribing again is ours to do, so that sleepers are woken after it and never before.
    listening.subscribe(CHANNEL).then(
      () => {
        subscribed = true;
        sleepers.wakeAll();
        first.resolve();
      },
      (err) => {
        logger.warn({ err }, "subscribing to wake-ups failed");
        first.reject(err);
      },
    );
  });
  try {
    await Promise.all([speaking.ping(), first.promise]);
  } catch (error) {
    speaking.disconnect();
    listening.disconnect();
    throw error;
  }
  return {
    on: (topic, f) => sleepers.on(topic, f),
    announce: (topic) => {
      sleepers.wake(topic);
      outgoing.add(topic);
    },
    get healthy() {
      return subscribed;
    },
    get listeners() {
      return sleepers.count;
    },
    close: async () => {
      await outgoing.close();
      speaking.disconnect();
      listening.disconnect();
    },
  };
}
