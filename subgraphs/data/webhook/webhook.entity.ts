import { column, table } from "../../../infra/db/attr.ts";
import type { Sealed } from "../secret/secret-box.ts";

/** Where a team's events are sent; one for each team. */
@table("data", "webhook")
export class Webhook implements Sealed {
  @column.text({ primary: true }) tenantId!: string;
  @column.text() url!: string;
  /** Counts the secrets; the ciphertext is bound to it. */
  @column.int() version!: number;
  @column.text() masterKeyId!: string;
  @column.bytes() wrappedKey!: Buffer;
  @column.bytes() ciphertext!: Buffer;
  @column.at() createdAt!: Date;
  @column.at() updatedAt!: Date;
  /** Since when nothing is sent, because the receiver refused for good. Writing the webhook again starts it. */
  @column.at({ nullable: true }) disabledAt!: Date | null;
  /** Attempts that failed since the last one that succeeded. */
  @column.int({ defaultRaw: "0" }) failures!: number;
  /** When the first of them failed; null while deliveries succeed. */
  @column.at({ nullable: true }) failingSince!: Date | null;
}
