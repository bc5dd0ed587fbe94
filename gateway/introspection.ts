import { type DocumentNode, Kind, type OperationDefinitionNode, type SelectionNode } from "graphql";

const GRAPH_FIELDS = new Set(["__schema", "__type", "__typename"]);

/** True for a query that reads nothing but the graph's own types. */
export function isIntrospectionOnly(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  if (operation.operation !== "query") return false;
  const fragments = new Map(
    document.definitions.flatMap((d) => (d.kind === Kind.FRAGMENT_DEFINITION ? [[d.name.value, d] as const] : [])),
  );
  const visited = new Set<string>();
  const only = (selection: SelectionNode): boolean => {
    if (selection.kind === Kind.FIELD) return GRAPH_FIELDS.has(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return selection.selectionSet.selections.every(only);
    if (visited.has(selection.name.value)) return true;
    visited.add(selection.name.value);
    return fragments.get(selection.name.value)?.selectionSet.selections.every(only) ?? false;
  };
  return operation.selectionSet.selections.every(only);
}
