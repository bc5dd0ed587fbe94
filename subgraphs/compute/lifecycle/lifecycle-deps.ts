import type { Database } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import type { SecretPort } from "../../data/published.ts";
import type { ComputeSettings } from "../settings.ts";

/** What the commands of a running generation use. */
export interface LifecycleDeps {
  db: Database;
  clock: Clock;
  settings: ComputeSettings;
  secrets: Pick<SecretPort, "reveal">;
  /** Cryptographic randomness for session tokens. */
  random: (size: number) => Uint8Array;
}
