import { Arg, Ctx, FieldResolver, ID, Mutation, Query, Resolver, Root } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { DataContext } from "../data-context.ts";
import {
  type ConnectionDeps,
  createConnection,
  deleteConnection,
  listConnections,
  requireConnection,
  verifyConnection,
} from "./connection.commands.ts";
import { Connection } from "./connection.entity.ts";
import { ConnectionPayload, ConnectionRefInput, CreateConnectionInput } from "./connection.input.ts";
import { activeConnectionIds } from "./find-connection.ts";

const ConnectionConnection = connectionOf(Connection, "Connection");

@Resolver(() => Connection)
export class ConnectionResolver {
  @Query(() => ConnectionConnection, { description: "The team's connections in order of their names." })
  connections(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Connection>> {
    const { tenantId } = actorOf(context, "data:read");
    return page<Connection>({
      list: "connections",
      first: pageSize(first, LIMITS.connectionsPerTeam),
      after,
      keyLength: 1,
      keyOf: (c) => [c.name],
      read: (key, limit) => listConnections(context.db, tenantId, key ? String(key[0]) : null, limit),
    });
  }

  @Query(() => Connection, { nullable: true, description: "A connection of the team. Refused as `not_found`." })
  connection(
    @Arg("id", () => ID, { description: "The connection's id or name." }) id: string,
    @Ctx() context: GraphContext,
  ): Promise<Connection> {
    return requireConnection(context.db, actorOf(context, "data:read").tenantId, id);
  }

  @Mutation(() => ConnectionPayload, {
    description: "Makes a connection once its credential was seen to work, within five seconds; stores nothing else.",
  })
  async createConnection(
    @Arg("input", () => CreateConnectionInput, { description: "The connection to make." }) input: CreateConnectionInput,
    @Ctx() context: DataContext,
  ): Promise<ConnectionPayload> {
    return { connection: await createConnection(depsOf(context), actorOf(context, "data:write"), input) };
  }

  @Mutation(() => ConnectionPayload, {
    description: "Looks again whether the credential works. Refused once its secret was replaced or retired.",
  })
  async verifyConnection(
    @Arg("input", () => ConnectionRefInput, { description: "The connection." }) input: ConnectionRefInput,
    @Ctx() context: DataContext,
  ): Promise<ConnectionPayload> {
    return { connection: await verifyConnection(depsOf(context), actorOf(context, "data:write"), input.id) };
  }

  @Mutation(() => ConnectionPayload, {
    description: "Takes a connection that nothing uses out of use. Its secret and everything outside stay as they are.",
  })
  async deleteConnection(
    @Arg("input", () => ConnectionRefInput, { description: "The connection." }) input: ConnectionRefInput,
    @Ctx() context: GraphContext,
  ): Promise<ConnectionPayload> {
    const actor = actorOf(context, "data:write");
    return { connection: await deleteConnection(context.db, actor, input.id, context.clock.now()) };
  }

  @FieldResolver(() => Boolean, {
    description: "Whether the pinned version is still the one in use of its secret; otherwise nothing new may use it.",
  })
  active(@Root() connection: Connection, @Ctx() context: GraphContext): Promise<boolean> {
    return context
      .loader<string, boolean>("activeConnections", async (ids) => {
        const active = await activeConnectionIds(context.db, ids);
        return ids.map((id) => active.has(id));
      })
      .load(connection.id);
  }
}

function depsOf({ db, clock, data }: DataContext): ConnectionDeps {
  return { db, clock, secretBox: data.secretBox, exceptions: data.exceptions, wandb: data.wandb };
}

/** A connection of the caller's team; null for anything else. */
export async function connectionReference(
  reference: { id: string },
  context: GraphContext,
): Promise<Connection | null> {
  const { tenantId } = actorOf(context, "data:read");
  if (!isId("connection", reference.id)) return null;
  return context.db.row(Connection, "where t.tenant_id = $1 and t.id = $2 and t.deleted_at is null", [
    tenantId,
    reference.id,
  ]);
}
