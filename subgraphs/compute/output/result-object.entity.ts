import { Index } from "@mikro-orm/decorators/legacy";
import { column, table } from "../../../infra/db/attr.ts";

/**
 * Bytes in the store of results. Whoever stores some claims them here, whoever refers to them holds the row while it
 * does, and what removes them takes the row's lock first: so bytes are never removed from under a reference.
 */
@table("compute", "result_object")
@Index({
  name: "result_object_removing",
  expression:
    "create index result_object_removing on compute.result_object (removing_since) where removing_since is not null",
})
export class ResultObject {
  @column.text({ primary: true }) sha256!: string;
  @column.count() bytes!: number;
  /** When they were stored last: for a day after, they may be about to be referred to. */
  @column.at() storedAt!: Date;
  /** Since when they are being removed; they must not be used any more. */
  @column.at({ nullable: true }) removingSince!: Date | null;
}
