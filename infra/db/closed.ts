import { registerEnumType } from "type-graphql";

const enums = new WeakMap<object, object>();

/** A closed set: one const array is the TypeScript union, the check constraint and the GraphQL enum. */
export function closed<const T extends readonly string[]>(name: string, description: string, values: T): T {
  const object = Object.freeze(Object.fromEntries(values.map((v) => [v, v])));
  registerEnumType(object, { name, description });
  enums.set(values, object);
  return values;
}

/** The GraphQL enum of a set that `closed` made. */
export function enumOf(values: readonly string[]): object {
  const found = enums.get(values);
  if (!found) throw new Error("not made by closed()");
  return found;
}
