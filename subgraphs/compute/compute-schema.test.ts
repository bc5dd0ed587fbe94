import { getNamedType, isEnumType, isInputObjectType, isInterfaceType, isObjectType } from "graphql";
import { expect, test } from "vitest";
import { buildComputeSubgraph } from "./index.ts";

test("the schema is the same however often it is built, and whatever other domains were built in between", async () => {
  const alone = buildComputeSubgraph().sdl;
  expect(buildComputeSubgraph().sdl).toBe(alone);
  const { buildRlSubgraph } = await import("../rl/index.ts");
  const rl = buildRlSubgraph().sdl;
  const after = buildComputeSubgraph();
  expect(after.sdl).toBe(alone);
  expect(buildRlSubgraph().sdl).toBe(rl);
});

test("every type, field, argument and word has a description", () => {
  const { schema } = buildComputeSubgraph();
  const bare: string[] = [];
  const own = Object.values(schema.getTypeMap()).filter(
    (t) =>
      !t.name.includes("__") &&
      !t.name.startsWith("_") &&
      !/^(Query|Mutation|Subscription|String|Int|Float|Boolean|ID)$/.test(t.name),
  );
  for (const type of own) {
    if (!type.description) bare.push(type.name);
    if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type))
      for (const field of Object.values(type.getFields()))
        if (!field.description) bare.push(`${type.name}.${field.name}`);
  }
  for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()])
    for (const field of Object.values(root!.getFields())) {
      if (field.name.startsWith("_")) continue; // federation's own
      if (!field.description) bare.push(`${root!.name}.${field.name}`);
      for (const argument of field.args)
        if (!argument.description) bare.push(`${root!.name}.${field.name}(${argument.name})`);
    }
  expect(bare).toEqual([]);
});

test("every mutation takes one input and gives a payload of its own", () => {
  const { schema } = buildComputeSubgraph();
  for (const field of Object.values(schema.getMutationType()!.getFields())) {
    expect([field.name, field.args.map((a) => a.name)]).toEqual([field.name, ["input"]]);
    expect(getNamedType(field.type).name).toMatch(/Payload$/);
  }
});

test("money is shown in dollars under a name that says so", () => {
  const { schema } = buildComputeSubgraph();
  for (const type of Object.values(schema.getTypeMap())) {
    if (isEnumType(type) || !isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      expect([type.name, field.name, /micros/i.test(field.name)]).toEqual([type.name, field.name, false]);
      if (getNamedType(field.type).name === "Usd") expect(field.name).toMatch(/Usd/);
    }
  }
});
