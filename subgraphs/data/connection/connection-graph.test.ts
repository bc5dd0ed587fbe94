import { parse } from "graphql";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RestFace, restFace } from "../../../tests/contract/rest-face.ts";
import { MEMBER, STRANGER } from "../../../tests/support/actors.ts";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { insertConnection } from "../../../tests/support/connections.ts";
import { putSecret } from "../secret/secret.commands.ts";

let face: RestFace;
beforeAll(async () => {
  face = await restFace();
}, 60_000);
afterAll(() => face?.close());

const put = (value: string) =>
  putSecret(
    { db: face.compute.db, box: face.compute.secretBox },
    MEMBER,
    { name: "DB", value },
    face.compute.clock.now(),
  );
const insert = (name: string) =>
  insertConnection(face.compute.db, TENANT, face.compute.clock.now(), { name, kind: "postgres", secret: "DB" });

// biome-ignore lint/suspicious/noExplicitAny: an answer's shape is its document's
async function ask(query: string, variables: Record<string, unknown> = {}, actor = MEMBER): Promise<any> {
  const { data, errors } = await face.gateway.execute({
    ...{ document: parse(query), variables, actor, requestId: "test" },
    signal: new AbortController().signal,
  });
  expect(errors).toBeUndefined();
  return data;
}

it("connections are listed page by page in order of their names, each with whether its version is in use", async () => {
  await put("postgres://a:bcd@db.example/x");
  await insert("b");
  await put("postgres://a:bce@db.example/x");
  for (const name of ["C", "a"]) await insert(name);
  const list = `query ($after: String) { connections(first: 2, after: $after) {
    nodes { name active secretVersion } pageInfo { hasNextPage endCursor } } }`;
  const first = await ask(list);
  expect(first.connections).toMatchObject({
    nodes: [
      { name: "C", active: true, secretVersion: 2 },
      { name: "a", active: true, secretVersion: 2 },
    ],
    pageInfo: { hasNextPage: true },
  });
  const { endCursor } = first.connections.pageInfo;
  expect((await ask(list, { after: endCursor })).connections).toMatchObject({
    nodes: [{ name: "b", active: false, secretVersion: 1 }],
    pageInfo: { hasNextPage: false },
  });
});

it("a connection is found as any object by its id, by its own team alone, until it is deleted", async () => {
  await put("postgres://a:bcd@db.example/x");
  const id = await insert("noded");
  const node = "query ($id: ID!) { node(id: $id) { id ... on Connection { name kind } } }";
  expect(await ask(node, { id })).toEqual({ node: { id, name: "noded", kind: "postgres" } });
  expect(await ask(node, { id }, STRANGER)).toEqual({ node: null });
  const deleted = await ask(`mutation { deleteConnection(input: { id: "noded" }) { connection { id } } }`);
  expect(deleted).toEqual({ deleteConnection: { connection: { id } } });
  expect(await ask(node, { id })).toEqual({ node: null });
});
