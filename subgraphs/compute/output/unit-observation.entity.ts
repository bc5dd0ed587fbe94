import { column, table } from "../../../infra/db/attr.ts";

/** A work unit that a command reported done. The same id after a recovery counts once. */
@table("compute", "unit_observation")
export class UnitObservation {
  @column.text({ primary: true }) workloadId!: string;
  @column.text({ primary: true }) stageId!: string;
  @column.text({ primary: true }) unitId!: string;
  @column.float() ms!: number;
  @column.at() createdAt!: Date;
}
