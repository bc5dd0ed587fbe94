import { Refused } from "../../infra/kernel/refusal.ts";
import type { Operation, Parameter } from "../contract.ts";
import { kindForParameter } from "./paging.ts";
import { type JsonSchema, resolve } from "./schema.ts";

/** A query string as Fastify parses it: a repeated name gives a list. */
export type RawQuery = Readonly<Record<string, string | string[] | undefined>>;
export type ReadQuery = (raw: RawQuery) => Record<string, unknown>;

type Coerce = (text: string) => unknown;

/**
 * Compiles an operation's query parameters: text becomes what the contract says, defaults are filled in, and what does
 * not fit is refused by name. An empty value counts as absent; names that the contract does not know are ignored.
 */
export function queryReader(root: object, operation: Operation): ReadQuery {
  const parameters = operation.parameters
    .filter((p) => p.in === "query")
    .map((p) => ({ ...p, schema: resolve(root, p.schema), coerce: coercion(resolve(root, p.schema)) }));
  return (raw) => {
    const out: Record<string, unknown> = {};
    for (const parameter of parameters) {
      const value = raw[parameter.name];
      if (Array.isArray(value)) throw refused(parameter, "must be given once");
      if (value) out[parameter.name] = coerced(parameter, value);
      else if (parameter.required) throw refused(parameter, "is required");
      else if (parameter.schema.default !== undefined) out[parameter.name] = parameter.schema.default;
    }
    return out;
  };
}

function coerced(parameter: Parameter & { coerce: Coerce }, text: string): unknown {
  try {
    return parameter.coerce(text);
  } catch (error) {
    if (error instanceof Misfit) throw refused(parameter, error.message);
    throw error;
  }
}

class Misfit extends Error {}

function coercion(schema: JsonSchema): Coerce {
  if (schema.type === "integer") return (text) => integer(text, schema);
  if (schema.type === "boolean") return boolean;
  return (text) => words(text, schema);
}

function integer(
  text: string,
  { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER, enum: values }: JsonSchema,
): number {
  const value = /^[+-]?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw new Misfit("must be a whole number");
  if (value < minimum) throw new Misfit(`must be at least ${minimum}`);
  if (value > maximum) throw new Misfit(`must be at most ${maximum}`);
  if (values && !values.includes(value)) throw new Misfit(`must be one of ${values.join(", ")}`);
  return value;
}

function boolean(text: string): boolean {
  if (text !== "true" && text !== "false") throw new Misfit("must be true or false");
  return text === "true";
}

function words(text: string, { enum: values, maxLength, pattern }: JsonSchema): string {
  if (text.includes("\0") || !text.isWellFormed()) throw new Misfit("has a character that is not allowed");
  if (values && !values.includes(text)) throw new Misfit(`must be one of ${values.join(", ")}`);
  if (maxLength !== undefined && [...text].length > maxLength)
    throw new Misfit(`must have at most ${maxLength} characters`);
  if (pattern !== undefined && !new RegExp(pattern, "u").test(text)) throw new Misfit(`must match ${pattern}`);
  return text;
}

function refused(parameter: Parameter, words: string): Refused {
  const { name } = parameter;
  return new Refused(kindForParameter(name), { field: `/${name}`, message: `${name} ${words}.` });
}
