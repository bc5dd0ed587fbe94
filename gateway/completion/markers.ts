import {
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "graphql";

/** The response key under which an object of an interface or union says its type; taken out of the result again. */
export const TYPE_MARKER = "nodus__type";

const MARKER: FieldNode = {
  kind: Kind.FIELD,
  alias: { kind: Kind.NAME, value: TYPE_MARKER },
  name: { kind: Kind.NAME, value: "__typename" },
};

/** The document with a marker in each selection on an interface or union; the same node when there is none. */
export function withTypeMarkers(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      SelectionSet: {
        leave: (set) =>
          isAbstractType(types.getParentType()) ? { ...set, selections: [MARKER, ...set.selections] } : undefined,
      },
    }),
  );
}
