import { GraphQLError, GraphQLScalarType, Kind, type ValueNode, valueFromASTUntyped } from "graphql";
import { fromUsdText, toUsd } from "../kernel/micros.ts";

/** Micro-dollars inside, dollars on the wire; read from the decimal text, never through a product of floats. */
export const Usd = new GraphQLScalarType<bigint, number>({
  name: "Usd",
  description: "US dollars with up to six decimals.",
  serialize: (value) => {
    if (typeof value !== "bigint") throw new GraphQLError("Usd wants bigint micros");
    return toUsd(value);
  },
  parseValue: readUsd,
  parseLiteral: (node: ValueNode) => readUsd(node.kind === Kind.INT || node.kind === Kind.FLOAT ? node.value : null),
});

function readUsd(value: unknown): bigint {
  const micros = typeof value === "number" || typeof value === "string" ? fromUsdText(String(value)) : null;
  if (micros === null) throw new GraphQLError("Usd is a number of dollars with at most six decimals");
  return micros;
}

/** A whole number that JavaScript and JSON hold exactly. */
export const SafeInt = new GraphQLScalarType<number, number>({
  name: "SafeInt",
  description: "A whole number between -(2^53 - 1) and 2^53 - 1, such as a byte count.",
  serialize: (value) => requireSafeInt(typeof value === "bigint" ? Number(value) : value),
  parseValue: requireSafeInt,
  parseLiteral: (node) => requireSafeInt(node.kind === Kind.INT ? Number(node.value) : null),
});

function requireSafeInt(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value))
    throw new GraphQLError("SafeInt is a whole number below 2^53");
  return value;
}

/** Any JSON value: documents that are passed on as they are, in wire spelling. */
export const Json = new GraphQLScalarType<unknown, unknown>({
  name: "JSON",
  description: "Any JSON value.",
  specifiedByURL: "https://www.rfc-editor.org/rfc/rfc8259",
  serialize: (value) => value,
  parseValue: (value) => value,
  parseLiteral: (node, variables) => valueFromASTUntyped(node, variables),
});
