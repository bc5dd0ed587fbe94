import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { filterInternalFieldsAndTypes } from "@graphql-tools/federation";
import { buildSchema, type GraphQLSchema, getOperationAST, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { readDocuments } from "../../rest-compat/documents.ts";
import { recaseVariables } from "../../rest-compat/wire/recase.ts";

const file = (path: string) => fileURLToPath(new URL(`../../schema/${path}`, import.meta.url));
const sdl = readFileSync(file("supergraph.graphql"), "utf8");
const schema: GraphQLSchema = filterInternalFieldsAndTypes(
  buildSchema(sdl, { assumeValid: true, assumeValidSDL: true }),
);
const documents = readDocuments(file("operations"));

describe("the documents behind the REST operations", () => {
  it.each([...documents.keys()])("%s is valid on the graph", (name) => {
    const document = documents.get(name)!;
    expect(validate(schema, document).map((error) => error.message)).toEqual([]);
    recaseVariables(schema, getOperationAST(document)!);
  });
});
