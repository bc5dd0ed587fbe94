import { fileURLToPath } from "node:url";
import { getOperationAST, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { readContract } from "../../rest-compat/contract.ts";
import { readDocuments } from "../../rest-compat/documents.ts";
import { recaseVariables } from "../../rest-compat/wire/recase.ts";
import { type JsonSchema, resolve } from "../../rest-compat/wire/schema.ts";
import { graphSchema } from "./graph-schema.ts";

const file = (path: string) => fileURLToPath(new URL(`../../schema/${path}`, import.meta.url));
const schema = graphSchema();
const documents = readDocuments(file("operations"));

describe("the documents behind the REST operations", () => {
  it.each([...documents.keys()])("%s is valid on the graph", (name) => {
    const document = documents.get(name)!;
    expect(validate(schema, document).map((error) => error.message)).toEqual([]);
    recaseVariables(schema, getOperationAST(document)!);
  });
});

/** Names of the members that a request's schema describes, at any depth. */
function memberNames(root: object, reference: JsonSchema, seen = new Set<JsonSchema>()): string[] {
  const schema = resolve(root, reference);
  if (seen.has(schema)) return [];
  seen.add(schema);
  const { properties = {}, additionalProperties, items, allOf = [], anyOf = [], oneOf = [] } = schema;
  const map = typeof additionalProperties === "object" ? [additionalProperties] : [];
  const parts = [...Object.values(properties), ...map, ...(items ? [items] : []), ...allOf, ...anyOf, ...oneOf];
  return [...Object.keys(properties), ...parts.flatMap((part) => memberNames(root, part, seen))];
}

it("names no member of a request in the graph's spelling, which is refused inside objects", () => {
  const contract = readContract(file("contract/openapi.json"));
  const names = [...contract.operations.values()].flatMap(({ body }) =>
    body ? memberNames(contract.document, body) : [],
  );
  expect(names).toContain("egress_allow");
  expect(names.filter((name) => /[A-Z]/.test(name))).toEqual([]);
});
