/** A JSON Schema (2020-12) as far as this layer reads it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly description?: string;
  readonly readOnly?: boolean;
}

/** Follows `$ref`s within one document until there is a schema; throws when a reference leads nowhere. */
export function resolve(root: object, schema: JsonSchema): JsonSchema {
  let found = schema;
  while (found.$ref !== undefined) {
    const steps = found.$ref.slice("#/".length).split("/");
    const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], root);
    if (target === undefined || !found.$ref.startsWith("#/")) throw new Error(`${found.$ref} leads nowhere`);
    found = target as JsonSchema;
  }
  return found;
}

/** The last step of a reference such as `#/components/schemas/Error`; undefined for an inline schema. */
export function refName(schema: JsonSchema | undefined): string | undefined {
  return schema?.$ref?.split("/").at(-1);
}
