import { parse } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { type RestFace, restFace } from "../contract/rest-face.ts";
import { MEMBER, STRANGER } from "../support/actors.ts";

let face: RestFace;

beforeAll(async () => {
  face = await restFace();
});
afterAll(() => face.close());

async function run(document: string, actor: Actor, variables: Record<string, unknown> = {}) {
  const result = await face.gateway.execute({ document: parse(document), variables, actor, requestId: "req_node" });
  expect(result.errors).toBeUndefined();
  return result.data as Record<string, Record<string, { id: string }> | null>;
}

const NODE =
  "query ($id: ID!) { node(id: $id) { __typename id ... on Pool { name } ... on Workspace { sizeGb } ... on Secret { version } } }";

test("an object of any domain is found by its id alone, with the fields that its own domain gives", async () => {
  const made = await run(
    `mutation {
      createPool(input: { name: "racks" }) { pool { id } }
      createWorkspace(input: { name: "notes", sizeGb: 2 }) { workspace { id } }
      putSecret(input: { name: "TOKEN", value: "s3cret-value" }) { secret { id } }
    }`,
    MEMBER,
  );
  const ids = [made.createPool!.pool, made.createWorkspace!.workspace, made.putSecret!.secret].map(
    (o) => (o as { id: string }).id,
  );
  const found = await Promise.all(ids.map(async (id) => (await run(NODE, MEMBER, { id })).node));
  expect(found).toEqual([
    { __typename: "Pool", id: ids[0], name: "racks" },
    { __typename: "Workspace", id: ids[1], sizeGb: 2 },
    { __typename: "Secret", id: ids[2], version: 1 },
  ]);
  for (const id of ids) expect(await run(NODE, STRANGER, { id })).toEqual({ node: null });
});

test("an id that names nothing is null and no error", async () => {
  for (const id of ["pool_nothing", "wl_nothing", "nonsense", ""])
    expect(await run(NODE, MEMBER, { id })).toEqual({ node: null });
});
