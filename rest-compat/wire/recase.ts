import {
  type GraphQLInputType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  type OperationDefinitionNode,
  typeFromAST,
} from "graphql";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import { kindForParameter } from "./paging.ts";
import { type Place, pointer } from "./pointer.ts";

/** Turns one wire value into an input value, or refuses it with the pointer of the member to blame. */
export type Recase = (value: unknown, place: Place) => unknown;
/** Turns the wire's arguments (snake_case, by name) into GraphQL variables. */
export type RecaseVariables = (wire: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/**
 * Compiles a document's variables. Names change from snake_case to the input types' own, and only those: the walk stops
 * at scalars, so a customer's own map keys survive. Absent stays absent and null stays null.
 * A variable named `input` is the request's body: its members are pointed at from the root.
 */
export function recaseVariables(schema: GraphQLSchema, operation: OperationDefinitionNode): RecaseVariables {
  const made = new Map<GraphQLInputType, Recase>();
  const variables = (operation.variableDefinitions ?? []).map((definition) => {
    const name = definition.variable.name.value;
    const type = typeFromAST(schema, definition.type as never) as GraphQLInputType | undefined;
    if (!type) throw new Error(`variable $${name} has a type that the graph does not know`);
    const required = isNonNullType(type) && definition.defaultValue === undefined;
    return {
      name,
      wire: snake(name),
      required,
      recase: recaser(type, made),
      place: name === "input" ? null : { within: null, step: snake(name) },
    };
  });
  return (wire) => {
    const out: Record<string, unknown> = {};
    for (const { name, wire: from, required, recase, place } of variables) {
      const value = wire[from];
      if (value !== undefined) out[name] = recase(value, place);
      else if (required) throw refused(place, "is required");
    }
    return out;
  };
}

/** Compiles one input type; recursive types are closed over `made`. */
export function recaser(type: GraphQLInputType, made: Map<GraphQLInputType, Recase> = new Map()): Recase {
  const known = made.get(type);
  if (known) return known;
  let compiled: Recase | null = null;
  made.set(type, (value, place) => compiled!(value, place));
  compiled = compile(type, made);
  made.set(type, compiled);
  return compiled;
}

function compile(type: GraphQLInputType, made: Map<GraphQLInputType, Recase>): Recase {
  if (isNonNullType(type)) {
    const inner = recaser(type.ofType, made);
    return (value, place) => {
      if (value === null) throw refused(place, "must not be null");
      return inner(value, place);
    };
  }
  if (isListType(type)) return ofList(recaser(type.ofType, made));
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).map(
      (field): InputField => [snake(field.name), field.name, recaser(field.type, made), isRequiredInputField(field)],
    );
    return ofObject(fields);
  }
  if (isEnumType(type)) return ofEnum(type.getValues().map((value) => value.name));
  return SCALARS[type.name] ?? ((value) => value);
}

type InputField = readonly [wire: string, name: string, recase: Recase, required: boolean];

function ofObject(fields: readonly InputField[]): Recase {
  const misspelt = new Map(fields.filter(([from, to]) => from !== to).map(([from, to]) => [to, from]));
  return (value, place) => {
    if (value === null) return null;
    if (typeof value !== "object" || Array.isArray(value)) throw refused(place, "must be an object");
    const wire = value as Record<string, unknown>;
    if (place !== null) refuseGraphSpelling(wire, misspelt, place);
    const out: Record<string, unknown> = {};
    // Members that no field takes are left behind: closed schemas have refused them before, open ones ignore them.
    for (const [from, to, recase, required] of fields) {
      const member = Object.hasOwn(wire, from) ? wire[from] : undefined;
      if (member !== undefined) out[to] = recase(member, { within: place, step: from });
      else if (required) throw refused({ within: place, step: from }, "is required");
    }
    return out;
  };
}

/**
 * Refuses a member in the graph's spelling: ignored like other unknown members it would silently drop a rule such as
 * `egress_allow`. The body's own members are not looked at: the contract lets a client send others beside them.
 */
function refuseGraphSpelling(
  wire: Readonly<Record<string, unknown>>,
  misspelt: ReadonlyMap<string, string>,
  place: Place,
): void {
  for (const name of Object.keys(wire)) {
    const meant = misspelt.get(name);
    if (meant === undefined) continue;
    throw new Refused(COMMON.unknown_field, {
      field: pointer({ within: place, step: name }),
      message: `In REST this member is ${meant}.`,
      fix: `Send it as ${meant}.`,
    });
  }
}

function ofList(item: Recase): Recase {
  return (value, place) => {
    if (value === null) return null;
    if (!Array.isArray(value)) throw refused(place, "must be an array");
    return value.map((element, index) => item(element, { within: place, step: index }));
  };
}

function ofEnum(names: readonly string[]): Recase {
  return (value, place) => {
    if (value === null || names.includes(value as string)) return value;
    throw refused(place, `must be one of ${names.join(", ")}`);
  };
}

function leaf(fits: (value: unknown) => boolean, words: string): Recase {
  return (value, place) => {
    if (value === null || fits(value)) return value;
    throw refused(place, words);
  };
}

const isInt32 = (value: unknown): boolean => Number.isInteger(value) && (value as number) === ((value as number) | 0);
/** The scalars of GraphQL itself; custom ones hold customers' values and are read where they are served. */
const SCALARS: Readonly<Record<string, Recase>> = {
  String: leaf((value) => typeof value === "string", "must be a string"),
  ID: leaf((value) => typeof value === "string", "must be a string"),
  Boolean: leaf((value) => typeof value === "boolean", "must be true or false"),
  Int: leaf(isInt32, "must be a whole number below 2147483648"),
  Float: leaf((value) => Number.isFinite(value), "must be a number"),
};

function refused(place: Place, words: string): Refused {
  const field = pointer(place);
  const parameter = place && place.within === null ? String(place.step) : "";
  return new Refused(kindForParameter(parameter), { field, message: `${field || "The body"} ${words}.` });
}

/** `maxCostUsd` as the wire spells it. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
