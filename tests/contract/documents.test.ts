import { fileURLToPath } from "node:url";
import { getOperationAST, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { readDocuments } from "../../rest-compat/documents.ts";
import { recaseVariables } from "../../rest-compat/wire/recase.ts";
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
