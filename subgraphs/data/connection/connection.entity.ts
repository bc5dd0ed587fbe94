import { Index, Unique } from "@mikro-orm/decorators/legacy";
import { attr, column, entity, table } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

export const CONNECTION_KIND = closed("ConnectionKind", "What a connection leads to.", [
  "postgres",
  "neon",
  "supabase",
  "wandb",
]);
export type ConnectionKind = (typeof CONNECTION_KIND)[number];

export const CONNECTION_SCOPE = closed("ConnectionScope", "What a connection may be used for.", [
  "read",
  "write",
  "readwrite",
]);
export type ConnectionScope = (typeof CONNECTION_SCOPE)[number];

@entity("data", "connection", "A way to a service of the team's, with one version of a secret as its credential.")
@Unique({
  name: "connection_live_name",
  expression: "create unique index connection_live_name on data.connection (tenant_id, name) where deleted_at is null",
})
@Index({
  name: "connection_live_secret",
  expression: "create index connection_live_secret on data.connection (secret_id) where deleted_at is null",
})
@Index({
  name: "connection_deleted",
  expression: "create index connection_deleted on data.connection (deleted_at) where deleted_at is not null",
})
export class Connection {
  @attr.id("The connection's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.text("The name, unique within the team.") name!: string;
  @attr.oneOf(CONNECTION_KIND, "What it leads to.") kind!: ConnectionKind;
  @attr.ref("The secret that holds the credential.") secretId!: string;
  @attr.int("The version of the secret that was verified; no other is ever used.") secretVersion!: number;
  @attr.oneOf(CONNECTION_SCOPE, "What it may be used for.") scope!: ConnectionScope;
  @attr.text("Where the service is, as the team calls it; null when not said.", { nullable: true }) region!:
    | string
    | null;
  @attr.text("The Neon branch that the connection stands for; null when not said.", { nullable: true }) branch!:
    | string
    | null;
  @attr.text("The Weights & Biases entity; null when not said.", { nullable: true }) entity!: string | null;
  @attr.text("The Weights & Biases project; null when not said.", { nullable: true }) project!: string | null;
  @attr.texts("Hosts that are reached through it.") egressHosts!: string[];
  @attr.flag("Whether runs may be given the credential.") liveMode!: boolean;
  @attr.at("When the credential was last seen to work.") verifiedAt!: Date;
  @attr.at("When it was made.") createdAt!: Date;
  @attr.ref("Who made it: a member, or a team's key.") createdBy!: string;
  /** The row stays for what was pinned before; nothing new finds it. */
  @column.at({ nullable: true }) deletedAt!: Date | null;
}

/** A holder, such as a workload, an export or a load, that uses a connection until it lets go. */
@table("data", "connection_use")
@Index({ name: "connection_use_connection", properties: ["connectionId"] })
export class ConnectionUse {
  @column.text({ primary: true }) holderId!: string;
  @column.text({ primary: true }) connectionId!: string;
  @column.text() tenantId!: string;
  @column.at() createdAt!: Date;
}
