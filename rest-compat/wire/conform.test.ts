import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readContract } from "../contract.ts";
import { allowsNull, conformer } from "./conform.ts";
import { type JsonSchema, resolve } from "./schema.ts";

const root = {
  components: {
    schemas: {
      Node: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string" },
          note: { type: "string" },
          gone_at: { type: ["string", "null"] },
          next: { anyOf: [{ $ref: "#/components/schemas/Node" }, { type: "null" }] },
          children: { type: "array", items: { $ref: "#/components/schemas/Node" } },
          anything: {},
        },
      },
    },
  },
};
const node: JsonSchema = { $ref: "#/components/schemas/Node" };
const contract = readContract(fileURLToPath(new URL("../../schema/contract/openapi.json", import.meta.url)));

describe("conforming", () => {
  it("drops a null exactly where the contract allows none, at every depth", () => {
    const value = {
      name: "a",
      note: null,
      gone_at: null,
      next: { name: "b", note: null, next: null },
      children: [{ name: "c", note: null }],
      anything: null,
    };
    conformer(root, node)!(value);
    expect(value).toEqual({
      name: "a",
      gone_at: null,
      next: { name: "b", next: null },
      children: [{ name: "c" }],
      anything: null,
    });
  });

  it("makes any tree valid again whose optional members were turned to null", () => {
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: "root:/", ...root });
    const valid = ajv.getSchema("root:/#/components/schemas/Node")!;
    const conform = conformer(root, node)!;
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
    const trees = fc.letrec<{ node: object }>((tie) => ({
      node: fc.record({
        name: fc.string(),
        note: optional(fc.string()),
        gone_at: optional(fc.string()),
        next: optional(tie("node")),
        children: optional(fc.array(tie("node"), { maxLength: 3 })),
        anything: fc.jsonValue(),
      }),
    })).node;
    fc.assert(
      fc.property(trees, (tree) => {
        const once = structuredClone(tree);
        conform(once);
        expect(valid(once)).toBe(true);
        const twice = structuredClone(once);
        conform(twice);
        expect(twice).toEqual(once);
      }),
    );
  });

  it("leaves values of another type alone", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.string())), (value) => {
        const before = structuredClone(value);
        conformer(root, node)!(value);
        expect(value).toEqual(before);
      }),
    );
  });

  it("compiles every documented answer", () => {
    for (const { id, successes } of contract.operations.values())
      for (const status of successes) {
        const schema = contract.response(id, status);
        if (schema) conformer(contract.document, schema);
      }
    expect(contract.operations.size).toBe(95);
  });

  it("agrees with the schema itself on which members of the contract may be null", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: "contract:/", components: contract.document.components });
    for (const [name, schema] of Object.entries(contract.document.components.schemas))
      for (const [key, member] of Object.entries(resolve(contract.document, schema).properties ?? {})) {
        const valid = ajv.compile({ $ref: `contract:/#/components/schemas/${name}/properties/${key}` })(null);
        expect([name, key, allowsNull(contract.document, member)]).toEqual([name, key, valid]);
      }
  });
});
