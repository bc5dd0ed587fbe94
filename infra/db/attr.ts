import { BigIntType, JsonType, type PropertyOptions } from "@mikro-orm/core";
import { Entity, Property } from "@mikro-orm/decorators/legacy";
import { Directive, Field, Float, GraphQLISODateTime, ID, Int, ObjectType } from "type-graphql";
import { Node } from "../graphql/node.ts";
import { Json, SafeInt, Usd } from "../graphql/scalars.ts";
import { enumOf } from "./closed.ts";
import { addColumn, addTable } from "./columns.ts";

/**
 * `attr.*` declares a table column and a GraphQL field in one decorator, `column.*` a column that the graph does not
 * show. The decorators compile only on a property of exactly the column's type.
 */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type On<V> = <T extends object, K extends keyof T & string>(
  target: T & (Same<T[K], V> extends true ? unknown : { "the property's type must be": V }),
  key: K,
) => void;
type Maybe<V, O> = O extends { nullable: true } ? V | null : V;

export interface ColumnOptions {
  nullable?: boolean;
  index?: boolean;
  unique?: boolean;
  /** SQL default for rows written by statements that do not name the column. */
  defaultRaw?: string;
  primary?: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: MikroORM's options are generic over the entity, which a column does not know
type AnyOptions = PropertyOptions<any>;

function stored(options: AnyOptions, o: ColumnOptions = {}, count = false) {
  return (target: object, key: string) => {
    addColumn(target.constructor, key, count);
    Property({ nullable: false, ...options, ...o })(target, key); // a fresh object: MikroORM writes into it
  };
}

function both<V, const O extends ColumnOptions>(
  options: AnyOptions,
  type: () => unknown,
  description: string,
  o?: O,
  count = false,
): On<Maybe<V, O>> {
  return ((target: object, key: string) => {
    stored(options, o, count)(target, key);
    const shown = shownAs(target, key);
    Field(type as () => typeof String, { description, nullable: o?.nullable ?? false, simple: true })(target, shown);
  }) as On<Maybe<V, O>>;
}

/** The graph shows money in dollars, so a column `spendMicros` is the field `spendUsd`: a getter of the class reads it. */
function shownAs(target: object, key: string): string {
  const shown = key.replace("Micros", "Usd");
  if (shown !== key)
    Object.defineProperty(target, shown, {
      configurable: true,
      get(this: Record<string, unknown>) {
        return this[key];
      },
    });
  return shown;
}

const text = { type: "text", columnType: "text" } as const;
const integer = { type: "integer" } as const;
const real = { type: "double", columnType: "double precision" } as const;
const flag = { type: "boolean" } as const;
const at = { type: "datetime", columnType: "timestamptz(3)" } as const;
const money = () => ({ type: new BigIntType("bigint"), columnType: "bigint" });
const count = () => ({ type: new BigIntType("number"), columnType: "bigint" });
const json = { type: JsonType, columnType: "jsonb" } as const;
const texts = { type: "text[]", columnType: "text[]" } as const;

export const attr = {
  id: (d: string): On<string> => both<string, ColumnOptions>({ ...text, primary: true }, () => ID, d) as On<string>,
  /** An id of another object. */
  ref: <const O extends ColumnOptions>(d: string, o?: O) => both<string, O>(text, () => ID, d, o),
  text: <const O extends ColumnOptions>(d: string, o?: O) => both<string, O>(text, () => String, d, o),
  texts: <const O extends ColumnOptions>(d: string, o?: O) => both<string[], O>(texts, () => [String], d, o),
  int: <const O extends ColumnOptions>(d: string, o?: O) => both<number, O>(integer, () => Int, d, o),
  float: <const O extends ColumnOptions>(d: string, o?: O) => both<number, O>(real, () => Float, d, o),
  flag: <const O extends ColumnOptions>(d: string, o?: O) => both<boolean, O>(flag, () => Boolean, d, o),
  /** A whole number up to 2^53, such as a byte count. */
  count: <const O extends ColumnOptions>(d: string, o?: O) => both<number, O>(count(), () => SafeInt, d, o, true),
  money: <const O extends ColumnOptions>(d: string, o?: O) => both<bigint, O>(money(), () => Usd, d, o),
  at: <const O extends ColumnOptions>(d: string, o?: O) => both<Date, O>(at, () => GraphQLISODateTime, d, o),
  oneOf: <const T extends readonly string[], const O extends ColumnOptions>(values: T, d: string, o?: O) =>
    both<T[number], O>({ ...text, enum: true, items: [...values] } as AnyOptions, () => enumOf(values), d, o),
};

/** A document column as a GraphQL JSON field; its TypeScript type is the caller's. */
export function document<V, const O extends ColumnOptions = object>(d: string, o?: O): On<Maybe<V, O>> {
  return both<V, O>(json, () => Json, d, o);
}

export const column = {
  id: () => stored({ ...text, primary: true }) as On<string>,
  text: <const O extends ColumnOptions>(o?: O) => stored(text, o) as On<Maybe<string, O>>,
  texts: <const O extends ColumnOptions>(o?: O) => stored(texts, o) as On<Maybe<string[], O>>,
  int: <const O extends ColumnOptions>(o?: O) => stored(integer, o) as On<Maybe<number, O>>,
  float: <const O extends ColumnOptions>(o?: O) => stored(real, o) as On<Maybe<number, O>>,
  flag: <const O extends ColumnOptions>(o?: O) => stored(flag, o) as On<Maybe<boolean, O>>,
  count: <const O extends ColumnOptions>(o?: O) => stored(count(), o, true) as On<Maybe<number, O>>,
  money: <const O extends ColumnOptions>(o?: O) => stored(money(), o) as On<Maybe<bigint, O>>,
  at: <const O extends ColumnOptions>(o?: O) => stored(at, o) as On<Maybe<Date, O>>,
  bytes: <const O extends ColumnOptions>(o?: O) =>
    stored({ type: "blob", columnType: "bytea" }, o) as On<Maybe<Buffer, O>>,
  oneOf: <const T extends readonly string[], const O extends ColumnOptions>(values: T, o?: O) =>
    stored({ ...text, enum: true, items: [...values] } as AnyOptions, o) as On<Maybe<T[number], O>>,
  document: <V, const O extends ColumnOptions = object>(o?: O) => stored(json, o) as On<Maybe<V, O>>,
};

/** A federated entity: a table in the domain's schema and a GraphQL type with a key. */
export function entity(schema: string, tableName: string, description: string, key = "id"): ClassDecorator {
  return (target) => {
    table(schema, tableName)(target);
    ObjectType(target.name, { description, implements: Node })(target);
    Directive(`@key(fields: "${key}")`)(target);
  };
}

/** A table whose rows the graph shows, without being an entity of the federation. */
export function object(schema: string, tableName: string, description: string): ClassDecorator {
  return (target) => {
    table(schema, tableName)(target);
    ObjectType(target.name, { description })(target);
  };
}

/** A table that the graph does not show. */
export function table(schema: string, tableName: string): ClassDecorator {
  return (target) => {
    Entity({ schema, tableName })(target);
    addTable(target, `${schema}.${tableName}`);
  };
}
