import fc from "fast-check";
import {
  buildSchema,
  type GraphQLCompositeType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { expect, it } from "vitest";
import { TYPE_MARKER } from "./normal.ts";
import { byCompletion, byGraphqlJs } from "./oracle-fixture.ts";

const OBJECTS = ["A", "B", "C"];
const LEAVES = ["Int", "String"];
const WRAPPINGS = ["T", "T!", "[T]", "[T!]", "[T]!", "[T!]!", "[[T!]]", "[[T]!]!"];

/** A random graph: three objects, an interface that all have, a union of them. */
const graph = fc
  .array(fc.tuple(fc.constantFrom(...LEAVES, ...OBJECTS, "I", "U"), fc.constantFrom(...WRAPPINGS)), {
    minLength: 12,
    maxLength: 12,
  })
  .map((fields) => {
    const written = fields.map(([name, wrapping], i) => `f${i}: ${wrapping.replace("T", name)}`);
    const shared = written.slice(0, 2).join(" ");
    const objects = OBJECTS.map(
      (name, i) => `type ${name} implements I { ${shared} ${written.slice(2 + i * 2, 4 + i * 2).join(" ")} }`,
    );
    return buildSchema(
      `interface I { ${shared} } union U = A | B | C ${objects.join(" ")} type Query { ${written.slice(8).join(" ")} one: A  any: I  either: U  all: [I!] }`,
    );
  });

/** Choices of one run, taken one after another: the whole case follows from the numbers. */
class Choices {
  #at = 0;
  readonly #numbers: readonly number[];
  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }
  below(n: number): number {
    return this.#numbers[this.#at++ % this.#numbers.length]! % n;
  }
  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

const SWITCHES = ["", "", "", "", "@include(if: $on)", "@skip(if: $on)", "@skip(if: $usual)", "@include(if: false)"];

function selection(schema: GraphQLSchema, type: GraphQLCompositeType, choices: Choices, depth: number): string {
  const parts: string[] = ["__typename"];
  const fields = "getFields" in type ? Object.values(type.getFields()) : [];
  const count = 1 + choices.below(4);
  for (let i = 0; i < count; i++) {
    const kind = depth > -1 ? choices.below(6) : 5;
    if (kind === 0 && isAbstractType(type)) {
      const inner = choices.of(schema.getPossibleTypes(type));
      parts.push(`... on ${inner.name} ${choices.of(SWITCHES)} { ${selection(schema, inner, choices, depth - 1)} }`);
    } else if (kind === 1) {
      parts.push(`... ${choices.of(SWITCHES)} { ${selection(schema, type, choices, depth - 1)} }`);
    } else if (fields.length > 0) {
      const field = choices.of(fields);
      const named = getNamedType(field.type);
      if (isCompositeType(named) && depth <= 0) continue;
      // The key says the field and the shape, so that selections always merge.
      const key = choices.below(3) === 0 ? `${type.name === "I" ? "x" : type.name}_${field.name}: ` : "";
      parts.push(
        `${key}${field.name} ${choices.of(SWITCHES)} ${isCompositeType(named) ? `{ ${selection(schema, named, choices, depth - 1)} }` : ""}`,
      );
    }
  }
  return parts.join(" ");
}

/** Values for every field under every key that a selection may use, with nulls and gaps anywhere. */
function rawValue(schema: GraphQLSchema, type: GraphQLOutputType, choices: Choices, depth: number): unknown {
  const rare = isNonNullType(type) ? 14 : 6;
  const chance = choices.below(rare);
  if (chance === 0) return null;
  if (chance === 1 && !isNonNullType(type)) return undefined;
  const nullable = getNullableType(type);
  if (isListType(nullable))
    return Array.from({ length: choices.below(4) }, () => rawValue(schema, nullable.ofType, choices, depth));
  if (!isCompositeType(nullable)) return nullable.toString() === "Int" ? choices.below(100) : "text";
  if (depth <= 0) return null;
  const concrete = isObjectType(nullable) ? nullable : choices.of(schema.getPossibleTypes(nullable));
  const object: Record<string, unknown> = { [TYPE_MARKER]: concrete.name };
  for (const field of Object.values(concrete.getFields())) {
    for (const key of [field.name, `${concrete.name}_${field.name}`, `x_${field.name}`])
      object[key] = rawValue(schema, field.type, choices, depth - 1);
  }
  return object;
}

it("gives what graphql-js gives, for any graph, selection, switches and values", () => {
  const numbers = fc.array(fc.nat({ max: 5_039 }), { minLength: 150, maxLength: 400 });
  fc.assert(
    fc.property(
      graph,
      numbers,
      fc.boolean(),
      fc.option(fc.boolean(), { nil: undefined }),
      (schema, given, on, usual) => {
        const choices = new Choices(given);
        const root = schema.getQueryType()!;
        const query = `query ($on: Boolean!, $usual: Boolean = true) { a: __typename @include(if: $on) b: __typename @skip(if: $usual) ${selection(schema, root, choices, 3)} }`;
        const raw = rawValue(schema, root, choices, 3) as Record<string, unknown>;
        const variables = usual === undefined ? { on } : { on, usual };
        expect(byCompletion(schema, query, raw ?? {}, variables)).toEqual(
          byGraphqlJs(schema, query, raw ?? {}, variables),
        );
      },
    ),
    { numRuns: 120 },
  );
}, 60_000);
