import { buildSchema, getOperationAST, getVariableValues, parse } from "graphql";
import { describe, expect, test } from "vitest";
import { variableErrors } from "./variable-errors.ts";

const schema = buildSchema(`
  enum Kind { url github }
  input Import { kind: Kind!, token: String, files: [String!], size: Int, nested: Import }
  type Query { go(input: Import, id: ID): Int }
`);
const { variableDefinitions } = getOperationAST(
  parse("query ($input: Import!, $id: ID) { go(input: $input, id: $id) }"),
)!;
const TOKEN = "hf_top-secret";

const messages = (variables: Record<string, unknown>) =>
  variableErrors(schema, variableDefinitions!, variables).map((error) => error.message);

describe("what is wrong is told by place and type, and no value is repeated", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["nothing", {}, 'Variable "$input" of required type "Import!" was not provided.'],
    ["null", { input: null }, 'Variable "$input" is refused. Expected non-nullable type "Import!" not to be null.'],
    ["no object", { input: TOKEN }, 'Variable "$input" is refused. Expected type "Import" to be an object.'],
    [
      "an unknown field beside a token",
      { input: { kind: "url", token: TOKEN, tokn: 1 } },
      'Variable "$input" is refused. Field "tokn" is not defined by type "Import". Did you mean "token"?',
    ],
    [
      "a missing field beside a token",
      { input: { token: TOKEN } },
      'Variable "$input" is refused. Field "kind" of required type "Kind!" was not provided.',
    ],
    [
      "a token in a list's place",
      { input: { kind: "url", token: [TOKEN] } },
      'Variable "$input" at "input.token" is refused. Expected type "String".',
    ],
    [
      "a token as a number",
      { input: { kind: "url", size: TOKEN } },
      'Variable "$input" at "input.size" is refused. Expected type "Int".',
    ],
    [
      "a token as a word of a set",
      { input: { kind: TOKEN } },
      'Variable "$input" at "input.kind" is refused. Expected type "Kind".',
    ],
    [
      "deep inside",
      { input: { kind: "url", nested: { kind: "url", files: ["a", { TOKEN }] } } },
      'Variable "$input" at "input.nested.files.1" is refused. Expected type "String".',
    ],
    ["an object as id", { input: { kind: "url" }, id: { TOKEN } }, 'Variable "$id" is refused. Expected type "ID".'],
  ])("%s", (_name, variables, message) => {
    expect(messages(variables)).toEqual([message]);
    expect(message).not.toContain(TOKEN);
    expect(getVariableValues(schema, variableDefinitions!, variables).errors).toHaveLength(1);
  });

  test("right variables have nothing wrong with them", () => {
    expect(messages({ input: { kind: "github", files: ["*"], size: 3 }, id: 7 })).toEqual([]);
  });
});
