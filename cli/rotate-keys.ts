import type { Database } from "../infra/db/database.ts";
import { DatabaseInUse, lockPlatform, type PlatformLock } from "../infra/db/single-platform.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { masterKeyAgreement } from "../roles/agreements.ts";
import { deploymentKeys, type KeySettings, secretsKeyOf } from "../roles/keys.ts";
import { adoptNextMasterKey, masterKeyOf, nextMasterKeyOf } from "../roles/master-key-file.ts";
import { rewrapSealed, unreadableCount } from "../subgraphs/data/secret/rewrap-sealed.ts";
import { SecretBox } from "../subgraphs/data/secret/secret-box.ts";
import { ClientError } from "./client.ts";
import { withDatabase } from "./operator-database.ts";
import { note } from "./progress.ts";

/** A change of the master key after one of its durable steps; it may be left there and begun again. */
export type RotationStep =
  | { step: "next key" }
  | { step: "rewrapped"; table: string; count: number }
  | { step: "adopted" }
  | { step: "done"; unreadable: number };

/** Changes the master key and wraps every stored secret anew; refuses while a platform runs that could not follow. */
export function rotateKeys(settings: Settings): Promise<void> {
  return withDatabase(settings, async (db, url) => {
    const lock = await keepOthersOut(settings, url);
    try {
      await tell(rotation(settings, db));
    } finally {
      await lock.release();
    }
  });
}

/**
 * The steps of a change. With a key file the next key is made beside it, everything is wrapped with that, and it takes
 * the file's place last: until then the platform opens with either. With a given key everything is wrapped with that one.
 */
export async function* rotation(settings: KeySettings, db: Database, batch?: number): AsyncGenerator<RotationStep> {
  const box = settings.masterKey ? givenKeys(settings) : fileKeys(settings);
  if (!settings.masterKey) yield { step: "next key" };
  for await (const { table, count } of rewrapSealed(db, box, batch)) yield { step: "rewrapped", table, count };
  if (!settings.masterKey) {
    adoptNextMasterKey(settings.dataDir);
    yield { step: "adopted" };
  }
  yield { step: "done", unreadable: await unreadableCount(db, box) };
}

function fileKeys(settings: KeySettings): SecretBox {
  masterKeyOf(settings.dataDir); // made if the platform never started, so that there is one to change
  const next = nextMasterKeyOf(settings.dataDir);
  const { secrets, otherSecrets } = deploymentKeys(settings);
  return new SecretBox(secretsKeyOf(next), [secrets, ...otherSecrets]);
}

function givenKeys(settings: KeySettings): SecretBox {
  const { secrets, otherSecrets } = deploymentKeys(settings);
  if (otherSecrets.length === 0)
    throw new ClientError(
      "There is no earlier master key to change from. Set NODUS_MASTER_KEY to the new key and NODUS_MASTER_KEY_PREVIOUS to the one so far.",
    );
  return new SecretBox(secrets, otherSecrets);
}

/**
 * With a key file nobody may run: a platform that started before would not know the next key. With a given key processes
 * of a deployment may run if they have that very key.
 */
async function keepOthersOut(settings: Settings, url: string): Promise<PlatformLock> {
  const given = settings.masterKey !== null;
  try {
    return await lockPlatform({
      url,
      membership: given ? "member" : "alone",
      agreements: given ? [masterKeyAgreement(deploymentKeys(settings))] : [],
      logger: createLogger({ level: "warn", role: "operator" }),
      onLost: (error) => {
        note(`${error.message} Then run nodus keys rotate again.`);
        process.exit(1);
      },
    });
  } catch (error) {
    if (!(error instanceof DatabaseInUse)) throw error;
    throw new ClientError("The platform runs. Stop it, run nodus keys rotate, and start it again.");
  }
}

async function tell(steps: AsyncIterable<RotationStep>): Promise<void> {
  const counts = new Map<string, number>();
  for await (const step of steps) {
    if (step.step === "next key") note("The next master key is master.key.next in the data folder.");
    if (step.step === "rewrapped") counts.set(step.table, (counts.get(step.table) ?? 0) + step.count);
    if (step.step === "adopted")
      note("It is master.key now. The key so far is master.key.old: back-ups from before this change need it.");
    if (step.step !== "done") continue;
    for (const [table, count] of counts) process.stdout.write(`${table}: ${count} wrapped anew\n`);
    if (counts.size === 0) process.stdout.write("nothing was wrapped with another key\n");
    if (step.unreadable > 0)
      throw new ClientError(`${step.unreadable} stored values were encrypted with keys that are not here; they stay.`);
  }
}
