import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { JsonSchema } from "./schema.ts";

/** Refuses a body whose shape the contract does not allow, naming the member. */
export type CheckBody = (body: unknown) => void;

/**
 * How much of the contract's body schema is checked at this edge. `shape`: types, required members and members outside
 * closed schemas; the values are the domain's to judge, with its own codes. `whole`: every rule of the schema.
 */
export type CheckDepth = "shape" | "whole";

interface Components {
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** Compiles body checks against the contract's components. */
export class BodyChecks {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });

  constructor(contract: Components) {
    const { schemas } = contract.components;
    this.#ajv.addSchema({ $id: "whole:/", components: { schemas } });
    this.#ajv.addSchema({ $id: "shape:/", components: { schemas: mapValues(schemas, shapeOf) } });
  }

  compile(schema: JsonSchema, depth: CheckDepth): CheckBody {
    const own = depth === "shape" ? shapeOf(schema) : schema;
    const validate = this.#ajv.compile(absoluteRefs(own, `${depth}:/`) as object);
    return (body) => {
      if (!validate(body)) throw refusalOf(validate.errors!);
    };
  }
}

/** A schema's types, members and closedness without its rules about values. */
function shapeOf(schema: JsonSchema): JsonSchema {
  const { $ref, type, properties, additionalProperties, items, required, allOf } = schema;
  const union = (schema.anyOf ?? schema.oneOf)?.map(shapeOf).filter((branch) => branch.type ?? branch.$ref);
  return omitUndefined({
    $ref,
    type,
    properties: properties && mapValues(properties, shapeOf),
    additionalProperties:
      typeof additionalProperties === "object" ? shapeOf(additionalProperties) : additionalProperties,
    items: items && shapeOf(items),
    required,
    allOf: allOf?.map(shapeOf),
    anyOf: union?.length ? union : undefined,
  });
}

/** Inside a schema compiled on its own, `#/…` would mean that schema; the contract's components are meant. */
function absoluteRefs(schema: unknown, base: string): unknown {
  if (Array.isArray(schema)) return schema.map((item) => absoluteRefs(item, base));
  if (schema === null || typeof schema !== "object") return schema;
  return mapValues(schema as Record<string, unknown>, (value, key) =>
    key === "$ref" && typeof value === "string" && value.startsWith("#") ? base + value : absoluteRefs(value, base),
  );
}

function refusalOf(errors: readonly ErrorObject[]): Refused {
  // In a union every branch complains: the complaint that got furthest into the value says most.
  const error = errors.reduce((best, next) => (depthOf(next) > depthOf(best) ? next : best));
  if (error.keyword === "additionalProperties") {
    const field = `${error.instancePath}/${escaped(error.params.additionalProperty as string)}`;
    return new Refused(COMMON.unknown_field, { field, message: `${field} is not a member that this request takes.` });
  }
  const missing = error.keyword === "required" ? `/${escaped(error.params.missingProperty as string)}` : "";
  const field = error.instancePath + missing;
  return new Refused(COMMON.invalid_request, {
    field,
    message: `${field || "The body"} ${missing ? "is required" : wordsOf(error)}.`,
  });
}

function depthOf({ instancePath, keyword }: ErrorObject): number {
  const steps = instancePath.split("/").length;
  if (keyword === "additionalProperties" || keyword === "required") return steps + 1; // it names a member below
  return keyword === "anyOf" || keyword === "oneOf" ? steps - 0.5 : steps;
}

function wordsOf(error: ErrorObject): string {
  if (error.keyword === "enum")
    return `must be one of ${(error.params.allowedValues as unknown[]).map((v) => JSON.stringify(v)).join(", ")}`;
  if (error.keyword === "type") return `must be ${[error.params.type].flat().join(" or ")}`;
  return error.message ?? "is not acceptable";
}

function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function mapValues<V, W>(object: Readonly<Record<string, V>>, map: (value: V, key: string) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

function omitUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
