import fc from "fast-check";
import type { Contract } from "../../rest-compat/contract.ts";

/** What of a JSON Schema is looked at here. */
export interface BodySchema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, BodySchema>;
  items?: BodySchema;
  enum?: unknown[];
  allOf?: BodySchema[];
  oneOf?: BodySchema[];
  anyOf?: BodySchema[];
}

const NASTY_TEXTS = [
  "",
  " ",
  "../../../etc/passwd",
  "a\r\nset-cookie: x=1",
  "\u0000",
  "\ud800",
  "%00",
  "%ff",
  "__proto__",
  "'; drop table compute.workload; --",
  "{{7*7}}",
  "é".repeat(300),
  "x".repeat(5_000),
];
const NASTY_NUMBERS = [-1, 0, 1e308, -1e308, 2 ** 31, 2 ** 53, 0.1 + 0.2, 1e-7, 5];

/** Any value at all, with those in front that break careless code. */
function anything(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom<unknown>(...NASTY_TEXTS, ...NASTY_NUMBERS, null, true, false, [], {}),
    fc.jsonValue({ maxDepth: 3 }),
  );
}

/** What a request's body looks like by the contract, with members left out, wrong, extra or nested strangely. */
export function hostileBody(contract: Contract, schema: BodySchema, depth = 0): fc.Arbitrary<unknown> {
  const resolved = resolve(contract, schema);
  if (depth > 4) return anything();
  const choices = [...(resolved.oneOf ?? []), ...(resolved.anyOf ?? []), ...(resolved.allOf ?? [])];
  const shaped =
    choices.length > 0 && !resolved.properties
      ? ofChoices(contract, choices, depth)
      : ofShape(contract, resolved, depth);
  return fc.oneof({ arbitrary: shaped, weight: 5 }, { arbitrary: anything(), weight: 1 });
}

function ofChoices(contract: Contract, choices: BodySchema[], depth: number): fc.Arbitrary<unknown> {
  return fc.oneof(...choices.map((choice) => hostileBody(contract, choice, depth + 1)));
}

function ofShape(contract: Contract, schema: BodySchema, depth: number): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.properties) {
    const members = Object.entries(schema.properties).map(
      ([name, member]) => [name, hostileBody(contract, member, depth + 1)] as const,
    );
    return fc.record(Object.fromEntries(members), { requiredKeys: [] });
  }
  if (schema.items) return fc.array(hostileBody(contract, schema.items, depth + 1), { maxLength: 3 });
  const type = [schema.type].flat()[0];
  if (type === "integer" || type === "number") return fc.oneof(fc.constantFrom(...NASTY_NUMBERS), fc.double());
  if (type === "boolean") return fc.boolean();
  if (type === "string") return fc.oneof(fc.constantFrom("a", "main", ...NASTY_TEXTS), fc.string({ unit: "binary" }));
  return anything();
}

function resolve(contract: Contract, schema: BodySchema): BodySchema {
  if (!schema.$ref) return schema;
  const steps = schema.$ref.replace(/^#\//, "").split("/");
  return resolve(
    contract,
    steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], contract.document) as BodySchema,
  );
}

/** Values for paths and queries. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom("1", "-1", "wl_unknown", ...NASTY_TEXTS),
  fc.string({ unit: "binary", maxLength: 40 }),
);
