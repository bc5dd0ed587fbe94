import fc from "fast-check";
import { buildSchema, type GraphQLInputType, type GraphQLSchema, getOperationAST, parse } from "graphql";
import { describe, expect, it } from "vitest";
import { Refused } from "../../infra/kernel/refusal.ts";
import { recaser, recaseVariables, snake } from "./recase.ts";

const schema = buildSchema(`
  scalar JSON
  enum Policy { never after_wait }
  input Leaf { aName: String aCount: Int! aList: [[Int!]] }
  input Tree { nodeValue: String free: JSON left: Tree children: [Tree!] leaf: Leaf policy: Policy ok: Boolean = true }
  type Query { q(t: Tree, n: Int): Int }
`);
const tree = recaser(schema.getType("Tree") as GraphQLInputType);

/** Names as the graph and as the wire spell them. */
const camelName = fc.stringMatching(/^[a-z][a-z]{0,5}([A-Z][a-z]{1,5}){0,3}$/);

function refusalOf(run: () => unknown): { field: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof Refused) return { field: error.detail.field, message: error.message };
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("recasing", () => {
  it("leaves every value inside a scalar exactly as it came", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (free) => {
        expect(tree({ free }, null)).toEqual({ free });
      }),
    );
  });

  it("keeps the shape of a recursive input and renames its members only", () => {
    const wire = fc.letrec<{ tree: object }>((tie) => ({
      tree: fc.record(
        {
          node_value: fc.option(fc.string()),
          free: fc.jsonValue(),
          left: tie("tree"),
          children: fc.array(tie("tree"), { maxLength: 3 }),
          ok: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    })).tree;
    const spelled = (value: unknown): unknown => {
      const { node_value, free, left, children, ok } = value as Record<string, unknown> & { children?: unknown[] };
      const members = {
        nodeValue: node_value,
        free,
        left: left && spelled(left),
        children: children?.map(spelled),
        ok,
      };
      return Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined));
    };
    fc.assert(
      fc.property(wire, (value) => {
        expect(tree(value, null)).toEqual(spelled(value));
      }),
    );
  });

  it("finds every field by the snake_case form of its name", () => {
    fc.assert(
      fc.property(camelName, fc.string(), (name, value) => {
        const own: GraphQLSchema = buildSchema(`input I { ${name}: String } type Query { q(i: I): Int }`);
        expect(recaser(own.getType("I") as GraphQLInputType)({ [snake(name)]: value }, null)).toEqual({
          [name]: value,
        });
      }),
    );
  });

  it("either answers or refuses, and names a place that the value has or lacks", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          tree(value, null);
        } catch (error) {
          expect(error).toBeInstanceOf(Refused);
          expect((error as Refused).detail.field).toMatch(/^(\/.*)?$/);
        }
      }),
    );
  });

  it.each([
    [{ leaf: {} }, "/leaf/a_count", "is required"],
    [{ leaf: { a_count: null } }, "/leaf/a_count", "must not be null"],
    [{ leaf: { a_count: 1.5 } }, "/leaf/a_count", "whole number"],
    [{ leaf: { a_count: 1, a_list: [[1], [null]] } }, "/leaf/a_list/1/0", "must not be null"],
    [{ children: {} }, "/children", "must be an array"],
    [{ left: { left: { policy: "always" } } }, "/left/left/policy", "one of never, after_wait"],
    [{ left: [] }, "/left", "must be an object"],
    [{ ok: "true" }, "/ok", "true or false"],
  ])("refuses %j at %s", (value, field, words) => {
    const refusal = refusalOf(() => tree(value, null));
    expect(refusal.field).toBe(field);
    expect(refusal.message).toContain(words);
  });

  it("refuses a nested member in the graph's spelling, and at the top level ignores it", () => {
    expect(refusalOf(() => tree({ leaf: { aCount: 1, a_count: 1 } }, null))).toEqual({
      field: "/leaf/aCount",
      message: "In REST this member is a_count.",
    });
    expect(refusalOf(() => tree({ children: [{}, { nodeValue: null }] }, null)).field).toBe("/children/1/nodeValue");
    expect(tree({ nodeValue: "x", leaf: { a_count: 1, other: 2, ACount: 3 } }, null)).toEqual({ leaf: { aCount: 1 } });
  });

  it("refuses the graph's spelling exactly where it is another one than the wire's", () => {
    fc.assert(
      fc.property(camelName, fc.jsonValue(), (name, value) => {
        const own = buildSchema(`scalar J input I { ${name}: J } input O { i: I } type Query { q(o: O): Int }`);
        const send = () => recaser(own.getType("O") as GraphQLInputType)({ i: { [name]: value } }, null);
        if (name === snake(name)) expect(send()).toEqual({ i: { [name]: value } });
        else expect(refusalOf(send).field).toBe(`/i/${name}`);
      }),
    );
  });

  it("does not take inherited members for members of the body", () => {
    const own = buildSchema("input I { constructor: String! } type Query { q(i: I): Int }");
    expect(refusalOf(() => recaser(own.getType("I") as GraphQLInputType)({}, null)).field).toBe("/constructor");
  });

  it("points at a variable by its wire name, and into the body from its root", () => {
    const document = parse("query ($maxCount: Int!, $input: Tree) { q(t: $input, n: $maxCount) }");
    const recase = recaseVariables(schema, getOperationAST(document)!);
    expect(recase({ max_count: 3, input: { node_value: "x" }, more: 1 })).toEqual({
      maxCount: 3,
      input: { nodeValue: "x" },
    });
    expect(refusalOf(() => recase({})).field).toBe("/max_count");
    expect(refusalOf(() => recase({ max_count: 1, input: { node_value: 4 } })).field).toBe("/node_value");
  });
});
