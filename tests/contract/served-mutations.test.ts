import { parse } from "graphql";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { MEMBER, STRANGER } from "../support/actors.ts";
import { type ContractWorld, contractWorld } from "./contract-world.ts";
import { MUTATION_CASES, type MutationCase } from "./mutation-cases.ts";

let world: ContractWorld;
beforeAll(async () => {
  world = await contractWorld();
}, 120_000);
afterAll(() => world?.close(), 60_000);

const mutations = () => world.face.gateway.schema.getMutationType()!.getFields();

/** Codes of the errors of a mutation's answer; empty where it succeeded. */
async function codes(name: string, input: object | null, actor: Actor | null): Promise<unknown[]> {
  const type = mutations()[name]!.args.find((argument) => argument.name === "input")?.type;
  const document = type
    ? `mutation ($input: ${type}) { ${name}(input: $input) { __typename } }`
    : `mutation { ${name} { __typename } }`;
  const variables = input === null ? {} : { input };
  const answer = await world.face.gateway.execute({ document: parse(document), variables, actor, requestId: "r" });
  return (answer.errors ?? []).map(({ extensions }) => extensions?.code);
}

test("each mutation has its case here, and no other", () => {
  expect(Object.keys(MUTATION_CASES).sort()).toEqual(Object.keys(mutations()).sort());
});

describe.each(Object.entries(MUTATION_CASES))("%s", (name, { input, foreign }: MutationCase) => {
  it("does for its team what it refuses to do for nobody and for another team", async () => {
    const given = await input(world);
    expect(await codes(name, given, null)).toEqual(["unauthorized"]);
    if (foreign !== "names nothing of anybody's") expect(await codes(name, given, STRANGER)).toEqual([foreign]);
    expect(await codes(name, given, MEMBER)).toEqual([]);
  });
});

test("what another team does to its own by the same names leaves the team's as they are", async () => {
  const shown = async () =>
    JSON.stringify(
      await Promise.all(
        ["listSecrets", "getWebhook", "listPools", "listWorkspaces", "identity"].map(async (id) => {
          const { status, text } = await world.face.ask(id);
          return [status, text];
        }),
      ),
    );
  await world.webhook();
  const before = await shown();
  for (const [name, { input, foreign }] of Object.entries(MUTATION_CASES)) {
    if (foreign !== "names nothing of anybody's" || name === "disconnectGithub" || name === "deleteWebhook") continue;
    await codes(name, await input(world), STRANGER);
  }
  for (const name of ["deleteWebhook", "disconnectGithub"]) await codes(name, null, STRANGER);
  expect(await shown()).toBe(before);
});
