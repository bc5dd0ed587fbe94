import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { METHODS, readContract } from "../../rest-compat/contract.ts";

interface Described {
  readonly description?: string;
}
interface DescribedOperation extends Described {
  readonly operationId: string;
  readonly summary?: string;
  readonly parameters?: readonly (Described & { readonly name: string })[];
  readonly responses: Readonly<Record<string, Described>>;
}
interface DescribedContract {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Described>> };
}

const file = fileURLToPath(new URL("../../schema/contract/openapi.json", import.meta.url));
const contract = JSON.parse(readFileSync(file, "utf8")) as DescribedContract;
const operations = Object.values(contract.paths).flatMap((item) => METHODS.flatMap((method) => item[method] ?? []));

describe("the contract file", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(contract) as unknown as Record<string, unknown>);
    expect(errors ?? []).toEqual([]);
    expect([valid, validator.version]).toEqual([true, "3.1"]);
  });

  it("has 95 operations and 168 schemas, each operation under a name of its own", () => {
    const ids = operations.map((operation) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(95);
    expect(Object.keys(contract.components.schemas)).toHaveLength(168);
  });

  it("describes every operation, parameter, response and schema", () => {
    const bare = operations.flatMap(({ operationId, summary, description, parameters = [], responses }) => [
      ...(summary ? [] : [`${operationId} summary`]),
      ...(description ? [] : [operationId]),
      ...parameters
        .filter((parameter) => !parameter.description)
        .map((parameter) => `${operationId}?${parameter.name}`),
      ...Object.entries(responses)
        .filter(([, response]) => !response.description)
        .map(([status]) => `${operationId} ${status}`),
    ]);
    const schemas = Object.entries(contract.components.schemas)
      .filter(([, schema]) => !schema.description)
      .map(([name]) => name);
    expect([...bare, ...schemas]).toEqual([]);
  });

  it("has schemas that all compile, so that no reference leads nowhere", () => {
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    ajv.addSchema({ $id: "contract:/", components: readContract(file).document.components });
    for (const name of Object.keys(contract.components.schemas))
      ajv.compile({ $ref: `contract:/#/components/schemas/${name}` });
  });
});
