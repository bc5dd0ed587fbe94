import { Field, Int, ObjectType } from "type-graphql";
import type { Queryer } from "../../../infra/db/database.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import {
  BatchedReads,
  inOrder,
  ONE_OF_THE_OWNED,
  type Owned,
  ownedName,
  ownedValues,
} from "../../../infra/live/batched-reads.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import type { Wakeups } from "../../../infra/live/wakeups.ts";
import { dataTopics } from "../topics.ts";
import { Asset, type AssetState } from "./asset.entity.ts";

@ObjectType({ description: "An asset as it was at one change of it." })
export class AssetChange {
  @Field(() => Asset, { nullable: true, description: "The asset; null when it was forgotten meanwhile.", simple: true })
  asset!: Asset | null;
  @Field(() => Int, { description: "Where the item stands; give it as `after` to go on from here.", simple: true })
  cursor!: number;
  @Field(() => Boolean, {
    description: "True on the last item: the asset is ready, failed or deleted.",
    simple: true,
  })
  complete!: boolean;
}

/** States that an asset stays in unless somebody deletes it. */
const SETTLED: ReadonlySet<AssetState> = new Set(["ready", "failed", "deleted"]);

/** The asset at every change after one that is known, the latest where several came at once, until it is settled. */
export async function followAsset(
  source: { db: Queryer; wakeups: Pick<Wakeups, "on" | "healthy"> },
  { tenantId, assetId, after }: { tenantId: string; assetId: string; after: number },
): Promise<AsyncIterable<AssetChange>> {
  const read = () => assets.read(source.db, { tenantId, id: assetId });
  if (!(await read())) throw new Refused(COMMON.not_found, { field: "/assetId" });
  return follow<AssetChange, number>({
    wakeups: source.wakeups,
    topic: dataTopics.asset(assetId),
    after,
    share: (from) => `${tenantId} ${from}`,
    read: async (from) => pageOf(await read(), from),
  });
}

/** Most looks find nothing new, and learn it with those at other assets. */
const assets = new BatchedReads<Owned, Asset | null>(ownedName, async (db, wanted) => {
  const rows = await db.rows(Asset, `where (t.tenant_id, t.id) ${ONE_OF_THE_OWNED}`, ownedValues(wanted));
  return inOrder(wanted, rows, (asset) => asset);
});

function pageOf(asset: Asset | null, after: number): Page<AssetChange, number> {
  if (!asset) return { rows: [{ asset, cursor: after, complete: true }], after, done: true, more: false };
  const done = SETTLED.has(asset.state);
  const { changeSeq } = asset;
  // A settled asset is told once more to who knows it already: the last item says that there is no further one.
  const rows = changeSeq > after || done ? [{ asset, cursor: changeSeq, complete: done }] : [];
  return { rows, after: Math.max(after, changeSeq), done, more: false };
}
