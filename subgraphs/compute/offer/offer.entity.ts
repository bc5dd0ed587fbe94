import { Index } from "@mikro-orm/decorators/legacy";
import { column, table } from "../../../infra/db/attr.ts";

/** One supplier as the platform last heard of it. */
@table("compute", "supplier")
export class Supplier {
  /** The driver's `supplier`. */
  @column.id() id!: string;
  /** Rises with every change of one of its offers, under the row's lock. */
  @column.int() version!: number;
  /** When it last said what it offers. */
  @column.at() seenAt!: Date;
}

/** Capacity that offers share, with what is reserved of it. Reserved never exceeds total: the claim's WHERE sees to it. */
@table("compute", "capacity")
export class Capacity {
  /** `supplier/key`. */
  @column.id() id!: string;
  @column.text() supplier!: string;
  @column.int() cpuMillis!: number;
  @column.int() cpuMillisUsed!: number;
  @column.int() memoryMb!: number;
  @column.int() memoryMbUsed!: number;
  @column.int() gpus!: number;
  @column.int() gpusUsed!: number;
  @column.int() slots!: number;
  @column.int() slotsUsed!: number;
  @column.at() seenAt!: Date;
}

/** One configuration of a supplier as it was last seen. Operators' data: tenants see its sku and resources only. */
@table("compute", "offer")
@Index({
  name: "offer_identity",
  expression: `create unique index offer_identity on compute.offer (supplier, sku, region)`,
})
@Index({ name: "offer_changes", properties: ["supplier", "version"] })
export class Offer {
  @column.id() id!: string;
  @column.text() supplier!: string;
  @column.text() sku!: string;
  @column.text() region!: string;
  @column.text({ index: true }) capacityId!: string;
  @column.oneOf(["vm", "accelerator"]) computeClass!: "vm" | "accelerator";
  @column.float() vcpus!: number;
  @column.float() hostMemoryGb!: number;
  @column.float() diskGb!: number;
  @column.float({ nullable: true }) networkGbps!: number | null;
  @column.text({ nullable: true }) accelerator!: string | null;
  @column.int() gpuCount!: number;
  @column.float() deviceMemoryGb!: number;
  @column.money() rateMicrosPerHour!: bigint;
  @column.flag() interruptible!: boolean;
  @column.flag() simulated!: boolean;
  @column.flag() isolated!: boolean;
  @column.text({ nullable: true }) note!: string | null;
  @column.float() expectedBootSeconds!: number;
  @column.text({ nullable: true }) poolId!: string | null;
  @column.text({ nullable: true }) tenantId!: string | null;
  @column.at() seenAt!: Date;
  /** Set when the supplier no longer offers it. */
  @column.at({ nullable: true }) withdrawnAt!: Date | null;
  @column.at({ nullable: true }) quarantinedUntil!: Date | null;
  /** Boots that failed one after another. */
  @column.int() failuresInRow!: number;
  /** The supplier's version at which this row last changed. */
  @column.int({ defaultRaw: "0" }) version!: number;
}
