import type { LaunchOrder } from "../../../infra/drivers/driver.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { Match, RankedOffer } from "../offer/match-offers.ts";
import type { DueStage } from "./fair-batch.ts";
import type { Seeker } from "./reserve-capacity.ts";
import type { WaitingReason } from "./waiting.ts";

/** A stage on its way through a claim: its candidates, and what came of them. */
export interface StageSeeker extends Seeker {
  stage: DueStage;
  match: Match;
  /** Null while nothing stands in its way. */
  waitsFor: WaitingReason | null;
}

/** A stage that has capacity and money. */
export interface Granted {
  stage: DueStage;
  match: Match;
  chosen: RankedOffer;
  heldMicros: Micros;
}

/** An order that a claim wrote down and that must now reach its supplier. */
export interface ClaimedOrder {
  order: Omit<LaunchOrder, "token" | "intakeUrl">;
  /** Of the claim: whoever settles the order must still hold it. */
  fence: number;
  supplier: string;
  tenantId: string;
}
