import { Field, ID, InputType, ObjectType } from "type-graphql";
import { enumOf } from "../../../infra/db/closed.ts";
import {
  CONNECTION_KIND,
  CONNECTION_SCOPE,
  Connection,
  type ConnectionKind,
  type ConnectionScope,
} from "./connection.entity.ts";

const optional = (description: string) => ({ nullable: true, description });

@InputType({ description: "The connection to verify and make." })
export class CreateConnectionInput {
  @Field(() => String, {
    description: "A letter followed by up to 127 letters, digits, `_` or `-`; not `github`, not `conn_` at the start.",
  })
  name!: string;
  @Field(() => enumOf(CONNECTION_KIND), { description: "What it leads to." }) kind!: ConnectionKind;
  @Field(() => String, { description: "Name or id of the secret that holds the credential." }) secret!: string;
  @Field(
    () => enumOf(CONNECTION_SCOPE),
    optional("What it may be used for; read for a database and write for wandb when left out."),
  )
  scope?: ConnectionScope | null;
  @Field(() => String, optional("Where the service is, as the team calls it.")) region?: string | null;
  @Field(() => String, optional("The Neon branch that the address leads to; only for neon.")) branch?: string | null;
  @Field(() => String, optional("The entity that runs log to; only for wandb, and needed for live mode."))
  entity?: string | null;
  @Field(() => String, optional("The project that runs log to; only for wandb, and needed for live mode."))
  project?: string | null;
  @Field(
    () => Boolean,
    optional("Whether runs may be given the credential; only for wandb, and only an administrator may say so."),
  )
  liveMode?: boolean | null;
}

@ObjectType({ description: "A connection that was verified." })
export class ConnectionPayload {
  @Field(() => Connection, { description: "The connection.", simple: true }) connection!: Connection;
}

@InputType({ description: "A connection of the team." })
export class ConnectionRefInput {
  @Field(() => ID, { description: "The connection's id or name." }) id!: string;
}
