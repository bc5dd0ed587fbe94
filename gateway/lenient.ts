import { Kind, parse, print, type TypeNode, visit } from "graphql";

/**
 * A supergraph whose outputs are all nullable. The router drops an object in silence when one of its non-null fields
 * is missing; given this copy it hands every null on as it found it, and completion decides by the true schema.
 */
export function lenient(sdl: string): string {
  return print(visit(parse(sdl), { FieldDefinition: (field) => ({ ...field, type: nullable(field.type) }) }));
}

function nullable(type: TypeNode): TypeNode {
  if (type.kind === Kind.NON_NULL_TYPE) return nullable(type.type);
  return type.kind === Kind.LIST_TYPE ? { ...type, type: nullable(type.type) } : type;
}
