import { Account } from "./account/account.entity.ts";
import { ApiKey, ApiKeyAudit } from "./api-key/api-key.entity.ts";
import { Manifest } from "./checkpoint/manifest.entity.ts";
import { LedgerEntry } from "./ledger/ledger-entry.entity.ts";
import { LogChunk } from "./log/log-chunk.entity.ts";
import { Member } from "./member/member.entity.ts";
import { Capacity, Offer, Supplier } from "./offer/offer.entity.ts";
import { Output } from "./output/output.entity.ts";
import { ResultObject } from "./output/result-object.entity.ts";
import { UnitObservation } from "./output/unit-observation.entity.ts";
import { Attempt, Placement } from "./placement/placement.entity.ts";
import { Stage } from "./stage/stage.entity.ts";
import { Team } from "./team/team.entity.ts";
import { Workload } from "./workload/workload.entity.ts";
import { WorkloadEvent } from "./workload/workload-event.entity.ts";

/** Every table of the domain. */
export const computeEntities = [
  Account,
  ApiKey,
  ApiKeyAudit,
  Attempt,
  Capacity,
  LedgerEntry,
  LogChunk,
  Manifest,
  Member,
  Offer,
  Output,
  Placement,
  ResultObject,
  Stage,
  Supplier,
  Team,
  UnitObservation,
  Workload,
  WorkloadEvent,
];
