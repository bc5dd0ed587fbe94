import { Index, Unique } from "@mikro-orm/decorators/legacy";
import { attr, column, entity, table } from "../../../infra/db/attr.ts";
import type { Sealed } from "./secret-box.ts";

@entity("data", "secret", "A named value that runs may use and nobody can read back. This is what is known about it.")
@Unique({
  name: "secret_live_name",
  expression: "create unique index secret_live_name on data.secret (tenant_id, name) where retired_at is null",
})
export class Secret {
  @attr.id(
    "The secret's id, the same for all its versions. A name that is used again after retirement is another secret.",
  )
  id!: string;
  @column.text() tenantId!: string;
  @attr.text("The name, spelled as the environment variable that carries the value.") name!: string;
  @attr.int("The newest version, counted from 1.") version!: number;
  @attr.at("When the newest version was written.") createdAt!: Date;
  @attr.at("When the name was retired; null while it is in use.", { nullable: true }) retiredAt!: Date | null;
}

/** One encrypted version. The row goes when the version is destroyed. */
@table("data", "secret_version")
@Index({ name: "secret_version_retired", properties: ["retiredAt"] })
export class SecretVersion implements Sealed {
  @column.text({ primary: true }) secretId!: string;
  @column.int({ primary: true }) version!: number;
  @column.text() tenantId!: string;
  @column.text() masterKeyId!: string;
  @column.bytes() wrappedKey!: Buffer;
  @column.bytes() ciphertext!: Buffer;
  @column.at() createdAt!: Date;
  /** When a newer version or the retirement of the name took its place. */
  @column.at({ nullable: true }) retiredAt!: Date | null;
}

/** A holder, such as a workload, that keeps one version of a name until it lets go. */
@table("data", "secret_pin")
@Index({ name: "secret_pin_version", properties: ["secretId", "version"] })
export class SecretPin {
  @column.text({ primary: true }) holderId!: string;
  @column.text({ primary: true }) name!: string;
  @column.text() tenantId!: string;
  @column.text() secretId!: string;
  @column.int() version!: number;
  @column.at() createdAt!: Date;
}
