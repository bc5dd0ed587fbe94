import { type JsonSchema, resolve } from "./schema.ts";

/** Takes nulls out of a response, in place, where the contract does not allow one. */
export type Conform = (value: unknown) => void;

/**
 * Compiles a response schema, once per operation; null when nothing in it could need a change. The graph says null for
 * "nothing here", the contract says it by absence or by null, field by field. A missing required field stays missing:
 * that is a fault which the contract tests report.
 */
export function conformer(root: object, schema: JsonSchema): Conform | null {
  return compile(root, schema, new Map());
}

type Made = Map<JsonSchema, { conform: Conform | null; done: boolean }>;

function compile(root: object, reference: JsonSchema, made: Made): Conform | null {
  const schema = resolve(root, reference);
  const known = made.get(schema);
  // A schema inside itself: by the time that values come, the outer one is complete.
  if (known) return known.done ? known.conform : (value) => known.conform?.(value);
  const entry: { conform: Conform | null; done: boolean } = { conform: null, done: false };
  made.set(schema, entry);
  entry.conform = build(root, schema, made);
  entry.done = true;
  return entry.conform;
}

function build(root: object, schema: JsonSchema, made: Made): Conform | null {
  // A union with one branch besides null is that branch; a real union keeps its branches as they are.
  const branches = (schema.anyOf ?? schema.oneOf)?.filter((branch) => resolve(root, branch).type !== "null");
  if (branches?.length === 1) return compile(root, branches[0]!, made);
  const parts = [schema, ...(schema.allOf ?? [])].map((part) => resolve(root, part));
  const items = parts.find((part) => part.items)?.items;
  return items ? ofItems(compile(root, items, made)) : ofMembers(root, parts, made);
}

function ofItems(item: Conform | null): Conform | null {
  if (!item) return null;
  return (value) => {
    if (Array.isArray(value)) for (const element of value) item(element);
  };
}

function ofMembers(root: object, parts: readonly JsonSchema[], made: Made): Conform | null {
  const properties: Record<string, JsonSchema> = Object.assign({}, ...parts.map((part) => part.properties ?? {}));
  const drops: string[] = [];
  const inner: [string, Conform][] = [];
  for (const [key, schema] of Object.entries(properties)) {
    if (!allowsNull(root, schema)) drops.push(key);
    const conform = compile(root, schema, made);
    if (conform) inner.push([key, conform]);
  }
  if (drops.length === 0 && inner.length === 0) return null;
  return (value) => {
    if (value === null || typeof value !== "object") return;
    const object = value as Record<string, unknown>;
    for (const key of drops) if (object[key] === null) delete object[key];
    for (const [key, conform] of inner) {
      const member = object[key];
      if (member !== null && member !== undefined) conform(member);
    }
  };
}

/** Whether null is a valid value of a schema. */
export function allowsNull(root: object, reference: JsonSchema): boolean {
  const schema = resolve(root, reference);
  if (schema.const !== undefined) return schema.const === null;
  if (schema.enum) return schema.enum.includes(null);
  if (schema.type !== undefined)
    return schema.type === "null" || (Array.isArray(schema.type) && schema.type.includes("null"));
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return union.some((branch) => allowsNull(root, branch));
  if (schema.allOf) return schema.allOf.every((part) => allowsNull(root, part));
  return !schema.properties;
}
