import { Arg, Ctx, Field, InputType, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { actorOf, adminOf } from "../../../infra/graphql/context.ts";
import type { DataContext } from "../data-context.ts";
import { connectGithub, disconnectGithub, findGithubAccount } from "./github-account.commands.ts";
import { GithubAccount } from "./github-account.entity.ts";

@InputType({ description: "The account to connect." })
export class ConnectGithubInput {
  @Field(() => String, {
    description: "A personal or installation token that may read the repositories. It cannot be read back.",
  })
  token!: string;
}

@ObjectType({ description: "The account that is connected now." })
export class ConnectGithubPayload {
  @Field(() => GithubAccount, { description: "The account.", simple: true }) account!: GithubAccount;
}

@ObjectType({ description: "The account that was disconnected." })
export class DisconnectGithubPayload {
  @Field(() => GithubAccount, { description: "The account as it was.", simple: true }) account!: GithubAccount;
}

@Resolver()
export class GithubAccountResolver {
  @Query(() => GithubAccount, {
    nullable: true,
    description: "The team's account at GitHub; null when none is connected.",
  })
  githubAccount(@Ctx() context: DataContext): Promise<GithubAccount | null> {
    return findGithubAccount(context.db, actorOf(context, "data:read").tenantId);
  }

  @Mutation(() => ConnectGithubPayload, {
    description:
      "Connects an account at GitHub, in place of the one before, after asking GitHub whose it is. Administrators only.",
  })
  async connectGithub(
    @Arg("input", () => ConnectGithubInput, { description: "The account to connect." }) input: ConnectGithubInput,
    @Ctx() context: DataContext,
  ): Promise<ConnectGithubPayload> {
    const { secretBox, sources } = context.data;
    const deps = { db: context.db, box: secretBox, fetch: sources.fetch, apiUrl: sources.origins.github };
    return { account: await connectGithub(deps, adminOf(context), input.token, context.clock.now()) };
  }

  @Mutation(() => DisconnectGithubPayload, {
    description: "Disconnects the team's account at GitHub and forgets its token. Administrators only.",
  })
  async disconnectGithub(@Ctx() context: DataContext): Promise<DisconnectGithubPayload> {
    return { account: await disconnectGithub(context.db, adminOf(context)) };
  }
}
