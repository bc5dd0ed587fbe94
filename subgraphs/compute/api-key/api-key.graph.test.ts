import { graphql } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOf } from "../../../infra/graphql/context.ts";
import { requestLoaders } from "../../../infra/graphql/loaders.ts";
import { subgraph } from "../../../infra/graphql/subgraph.ts";
import { type Actor, SCOPES } from "../../../infra/kernel/actor.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { Member } from "../member/member.entity.ts";
import { MemberResolver, memberReference } from "../member/member.resolver.ts";
import { bootstrap } from "../team/bootstrap.ts";
import { createTeam } from "../team/team.commands.ts";
import { Team } from "../team/team.entity.ts";
import { MeResolver, TeamResolver, teamReference } from "../team/team.resolver.ts";
import { ApiKey, ApiKeyAudit } from "./api-key.entity.ts";
import { ApiKeyResolver, apiKeyReference } from "./api-key.resolver.ts";
import { resolveApiKey } from "./resolve-api-key.ts";

let database: TestDatabase;
let admin: Actor;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const { schema } = subgraph(
  "identity",
  [MeResolver, TeamResolver, MemberResolver, ApiKeyResolver],
  [
    [Team, teamReference],
    [Member, memberReference],
    [ApiKey, apiKeyReference],
  ],
);

beforeAll(async () => {
  database = await testDatabase([Team, Member, ApiKey, ApiKeyAudit]);
  const { key } = await bootstrap(database.db, { now: clock.now() });
  admin = (await resolveApiKey(database.db, key!, clock.now()))!;
});
afterAll(() => database?.close());

async function ask<T = Record<string, unknown>>(
  actor: Actor | null,
  source: string,
  variableValues: Record<string, unknown> = {},
) {
  const contextValue = {
    actor,
    requestId: "req_1",
    db: databaseOf(database.db, actor),
    clock,
    loader: requestLoaders(),
  };
  const { data, errors } = await graphql({ schema, source, variableValues, contextValue });
  return { data: data as T, codes: errors?.map((e) => e.extensions.code) };
}

const CREATE = `mutation ($input: CreateApiKeyInput!) {
  createApiKey(input: $input) { key apiKey { id name scopes lastFour revokedAt createdBy member { email } } }
}`;
interface Created {
  createApiKey: { key: string; apiKey: { id: string } };
}

test("a caller sees who it is, and its team with the people in it", async () => {
  const me = await ask(
    admin,
    "{ me { email name tenantId keyId memberId role scopes team { id name members { nodes { email role } } } } }",
  );
  expect(me.data).toEqual({
    me: {
      email: "admin@localhost",
      name: "Administrator",
      tenantId: admin.tenantId,
      keyId: admin.keyId,
      memberId: admin.memberId,
      role: "admin",
      scopes: SCOPES,
      team: {
        id: admin.tenantId,
        name: "Default team",
        members: { nodes: [{ email: "admin@localhost", role: "admin" }] },
      },
    },
  });
  expect((await ask(null, "{ me { email } }")).codes).toEqual(["unauthorized"]);
});

test("an administrator makes a key, sees it once, finds its history, and ends it", async () => {
  await clock.advance(10);
  const made = await ask<Created>(admin, CREATE, {
    input: { name: "ci", scopes: ["workloads:read"], memberId: admin.memberId },
  });
  expect(made.data).toMatchObject({
    createApiKey: {
      apiKey: { name: "ci", revokedAt: null, createdBy: admin.keyId, member: { email: "admin@localhost" } },
    },
  });
  const { key, apiKey } = made.data.createApiKey;
  expect((await resolveApiKey(database.db, key, clock.now()))?.keyId).toBe(apiKey.id);
  await clock.advance(10);
  const revoke = "mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { revokedAt } } }";
  expect((await ask(admin, revoke, { input: { id: apiKey.id } })).data).toEqual({
    revokeApiKey: { apiKey: { revokedAt: clock.now().toISOString() } },
  });
  const listed = await ask(
    admin,
    "{ apiKeys(first: 1) { nodes { id history { action byKeyId } } pageInfo { hasNextPage } } }",
  );
  expect(listed.data).toEqual({
    apiKeys: {
      nodes: [
        {
          id: apiKey.id,
          history: [
            { action: "revoked", byKeyId: admin.keyId },
            { action: "created", byKeyId: admin.keyId },
          ],
        },
      ],
      pageInfo: { hasNextPage: true },
    },
  });
  expect(JSON.stringify(listed)).not.toContain(key);
});

test("keys are an administrator's business", async () => {
  const made = await ask<Created>(admin, CREATE, { input: { name: "team key", scopes: ["data:read"] } });
  const team = (await resolveApiKey(database.db, made.data.createApiKey.key, clock.now()))!;
  const member: Actor = { ...admin, role: "member" };
  const unscoped: Actor = { ...admin, scopes: ["data:read"] };
  for (const actor of [team, member, unscoped]) {
    expect((await ask(actor, "{ apiKeys { nodes { id } } }")).codes).toEqual(["forbidden"]);
    expect((await ask(actor, CREATE, { input: { name: "x", scopes: ["data:read"] } })).codes).toEqual(["forbidden"]);
    const revoke = "mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }";
    expect((await ask(actor, revoke, { id: admin.keyId })).codes).toEqual(["forbidden"]);
    const add = `mutation { addMember(input: { email: "a@example.com", name: "A" }) { member { role } } }`;
    expect((await ask(actor, add)).codes).toEqual(["forbidden"]);
  }
  expect((await ask(team, "{ me { role email memberId } }")).data).toEqual({
    me: { role: "team", email: "", memberId: null },
  });
});

test("another team's objects are null to a reference", async () => {
  const other = await createTeam(
    database.db,
    { name: "Other", admin: { email: "o@example.com", name: "O" } },
    clock.now(),
  );
  const source = "query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }";
  const of = [
    { __typename: "Team", id: other.team.id },
    { __typename: "Member", id: other.admin.id },
    { __typename: "Team", id: admin.tenantId },
    { __typename: "Member", id: admin.memberId },
    { __typename: "ApiKey", id: admin.keyId },
  ];
  expect((await ask(admin, source, { of })).data).toEqual({
    _entities: [null, null, { __typename: "Team" }, { __typename: "Member" }, { __typename: "ApiKey" }],
  });
});
