import { readFileSync } from "node:fs";
import { type FieldDefinitionNode, Kind, type ObjectTypeDefinitionNode, parse } from "graphql";
import { expect, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { SUBGRAPH_NAMES } from "../../roles/graph.ts";

/** What lets an answer keep the data of the subgraphs that answered: no null may climb from one subgraph's field into another's. */
const types = SUBGRAPH_NAMES.flatMap((subgraph) => {
  const { definitions } = parse(readFileSync(projectFile("schema", "subgraphs", `${subgraph}.graphql`), "utf8"));
  return definitions
    .filter((node): node is ObjectTypeDefinitionNode => node.kind === Kind.OBJECT_TYPE_DEFINITION)
    .map((node) => ({ subgraph, name: node.name.value, fields: node.fields ?? [] }));
});

const nonNull = (fields: readonly FieldDefinitionNode[]) =>
  fields.filter(({ type }) => type.kind === Kind.NON_NULL_TYPE).map(({ name }) => name.value);

test("root fields of queries and mutations may be null", () => {
  const roots = types.filter(({ name }) => name === "Query" || name === "Mutation");
  expect(roots.length).toBeGreaterThan(SUBGRAPH_NAMES.length);
  for (const { subgraph, name, fields } of roots) expect(nonNull(fields), `${name} of ${subgraph}`).toEqual([]);
});

test("fields that a subgraph adds to another's type may be null", () => {
  const byName = Map.groupBy(
    types.filter(({ name, fields }) => !/^(Query|Mutation|Subscription)$/.test(name) && fields.some(isId)),
    ({ name }) => name,
  );
  const shared = [...byName.values()].filter((parts) => parts.length > 1);
  expect(shared.map(([part]) => part!.name)).toContain("Workload");
  for (const parts of shared) {
    const [, ...stubs] = parts.sort((a, b) => b.fields.length - a.fields.length); // the owner says most of it
    for (const { subgraph, name, fields } of stubs)
      expect(nonNull(fields.filter((field) => !isId(field))), `${name} in ${subgraph}`).toEqual([]);
  }
});

function isId({ name }: FieldDefinitionNode): boolean {
  return name.value === "id";
}
