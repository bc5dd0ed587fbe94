import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { readContract } from "../../rest-compat/contract.ts";
import { TABLE } from "../../rest-compat/table/table.ts";
import { type ContractWorld, contractWorld } from "./contract-world.ts";
import { OPERATION_CASES, type OperationCase } from "./operation-cases.ts";

const { operations } = readContract(projectFile("schema", "contract", "openapi.json"));
const cases = Object.entries(OPERATION_CASES);

let world: ContractWorld;
beforeAll(async () => {
  world = await contractWorld();
}, 120_000);
afterAll(() => world?.close(), 60_000);

/** Ids that the platform has given out in a text. */
const idsIn = (text: string) => text.match(/\b[a-z]+_[0-9a-f]{32}\b/g) ?? [];

test("each operation that is served has its case here, and no other", () => {
  expect(Object.keys(OPERATION_CASES).sort()).toEqual(Object.keys(TABLE).sort());
});

test("a case says that nothing can be wrong with its request only where the contract takes nothing but a path", () => {
  const silent = cases.filter(([, { bad }]) => typeof bad === "string").map(([id]) => operations.get(id)!);
  const taking = silent.filter(
    ({ body, parameters }) => body || parameters.some((parameter) => parameter.in === "query"),
  );
  expect(taking.map(({ id }) => id)).toEqual([]);
});

test("a case names nothing of anybody's only where its path names nothing", () => {
  const nameless = cases.filter(([, { names }]) => names === "nothing of anybody's");
  expect(nameless.map(([id]) => operations.get(id)!).filter(({ path }) => path.includes("{"))).toEqual([]);
});

describe.each(cases)("%s", (id, { happy, status, names }: OperationCase) => {
  it("answers what the contract says, and that only to who has credentials", async () => {
    const ask = await happy(world);
    expect((await world.face.ask(id, { ...ask, as: null })).status).toBe(401);
    const answer = await world.face.ask(id, ask);
    expect([answer.status, answer.text]).toEqual([status, answer.text]);
    expect(operations.get(id)!.successes).toContain(status);
  });

  it("gives another team nothing of the team's", async () => {
    const ask = await (typeof names === "string" ? happy : names.ask)(world);
    const foreign = await world.face.ask(id, { ...ask, as: "stranger" });
    const own = await world.face.ask(id, ask);
    expect([own.status, own.text]).toEqual([status, own.text]);
    if (names === "something in its path") expect([foreign.status, foreign.text]).toEqual([404, foreign.text]);
    if (typeof names === "object") expect([foreign.status, foreign.body.field]).toEqual([400, names.field]);
    const known = new Set(idsIn(own.text));
    expect(idsIn(foreign.text).filter((one) => known.has(one))).toEqual([]);
  });
});

const speaking = cases.flatMap(([id, { bad }]) => (typeof bad === "string" ? [] : [[id, bad] as const]));

it.each(speaking)(
  "%s refuses what is wrong, and says where and what to do",
  async (id, { ask, field, status = 400 }) => {
    const refused = await world.face.ask(id, await ask(world));
    expect([refused.status, refused.body.field ?? null]).toEqual([status, field]);
    expect(refused.body.fix).toBeTruthy();
  },
);
