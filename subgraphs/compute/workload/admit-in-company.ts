import type { Database } from "../../../infra/db/database.ts";
import { identityOf, type KeyedRequest } from "../../../infra/db/idempotency.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { Gathering } from "../../../infra/kernel/gathering.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { leastCredit, ownLimitTooSmall } from "../account/admission.ts";
import type { ComputeServices } from "../compute-context.ts";
import { monthStart } from "../ledger/ledger.commands.ts";
import type { MarketView, OfferMarket } from "../offer/offer-market.ts";
import { type AcceptedStage, acceptedRow } from "./accepted-rows.ts";
import { type Admittee, admitTogether } from "./admit-together.ts";
import { estimateStart } from "./estimate-start.ts";
import { judge, type WorkloadRequest } from "./judge.ts";
import { completeStages, NOTHING_PINNED, refersToNothing } from "./references.ts";
import type { ValidWorkload } from "./validate/validate.ts";
import type { Workload } from "./workload.entity.ts";

type Deps = Pick<ComputeServices, "settings" | "market"> & { readonly db: Database };

export interface Candidate {
  /** The workload's. */
  id: string;
  keyed: KeyedRequest;
  request: WorkloadRequest;
}

/** A request that was found good by itself. */
interface Asked extends Omit<Admittee, "leastMicros"> {
  readonly deps: Deps;
  readonly workload: ValidWorkload;
  readonly stages: readonly AcceptedStage[];
}

/**
 * Admits a workload in one transaction with others that this process is asked for at the same time. Null where that
 * cannot be, or does not admit it: then nothing was written, unless the answer of a commit was lost, and it is to be
 * admitted alone, which says what is wrong. So is a team's of which somebody holds something: others would wait with it.
 */
export async function admitInCompany(deps: Deps, actor: Actor, candidate: Candidate): Promise<Workload | null> {
  if (deps.db.isHeld) return null;
  try {
    const asked = ask(deps, actor, candidate);
    return asked && (await companyOf(deps.db).join(asked));
  } catch {
    return null; // a refusal, or a failure of the whole group: alone it meets its own again
  }
}

/** Null for a request that has more to look up than its key and its account, or is large. */
function ask(deps: Deps, actor: Actor, { id, keyed, request }: Candidate): Asked | null {
  if (JSON.stringify(request.payload).length > LIMITS.groupMemberBytes) return null;
  const { now } = keyed;
  const workload = judge(deps, request, now);
  if (!refersToNothing(workload)) return null;
  const stages = completeStages(workload, id, NOTHING_PINNED);
  const row = acceptedRow(actor, { id, workload, stages, now });
  return { deps, workload, stages, row, key: identityOf(keyed), monthStart: monthStart(now) };
}

const companies = new WeakMap<Database, Gathering<Asked, Workload | null>>();

/** Who asks the same database at the same time, of whichever team: a group is nobody's alone. */
function companyOf(asking: Database): Gathering<Asked, Workload | null> {
  const db = asking.whole ?? asking;
  let company = companies.get(db);
  if (!company) {
    company = new Gathering((group) => admitPriced(db, group));
    companies.set(db, company);
  }
  return company;
}

async function admitPriced(db: Database, group: readonly Asked[]): Promise<(Workload | null)[]> {
  const priced = await price(db, group);
  const admitted = await admitTogether(
    db,
    priced.filter((admittee) => admittee !== null),
  );
  const rest = admitted.values();
  return priced.map((admittee) => (admittee === null ? null : rest.next().value!));
}

/** Adds what each has to have free; null for one whose own limit does not cover its start. The market is looked at once. */
function price(db: Database, group: readonly Asked[]): Promise<(Admittee | null)[]> {
  const views = new Map<OfferMarket, Promise<MarketView>>();
  return Promise.all(
    group.map(async ({ deps, workload, stages, ...admittee }) => {
      const now = admittee.row.accepted_at;
      const view = views.get(deps.market) ?? deps.market.view(db, now);
      views.set(deps.market, view);
      const start = { tenantId: admittee.row.tenant_id, spec: stages[0]!.spec, now };
      const estimateMicros = await estimateStart(db, { settings: deps.settings, market: { view: () => view } }, start);
      const { maxCostMicros } = workload;
      return ownLimitTooSmall({ maxCostMicros, estimateMicros })
        ? null
        : { ...admittee, leastMicros: leastCredit({ estimateMicros }) };
    }),
  );
}
