import {
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isObjectType,
  isUnionType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from "graphql";
import type { FieldCollector } from "./fields.ts";

/**
 * The key under which an object of an interface or union says its type. It has no alias, as the planner asks for the
 * same by itself; no client's alias can be in its way, as documents with such aliases are refused.
 */
export const TYPE_MARKER = "__typename";

const MARKER: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: TYPE_MARKER } };

/**
 * Rewrites selections so that no key stands twice in an object and nothing is switched: the router joins lists that
 * are selected twice end to end, and loses objects beside a switched root field. Interfaces and unions say their type.
 */
export function normalSelection(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLCompositeType,
  sets: readonly SelectionSetNode[],
): SelectionSetNode {
  if (isObjectType(type)) return selectionSet(fieldsOf(schema, collector, type, collector.collect(type, sets)));
  const possible = schema.getPossibleTypes(type);
  const [first] = possible;
  // Where all types get the same fields, the fields stay where the client wrote them.
  if (first && collector.isUniform(type, sets))
    return selectionSet([MARKER, ...fieldsOf(schema, collector, type, collector.collect(first, sets))]);
  const branches = possible.flatMap((object): SelectionNode[] => {
    const fields = fieldsOf(schema, collector, object, collector.collect(object, sets));
    if (fields.length === 0) return [];
    const typeCondition = { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: object.name } } as const;
    return [{ kind: Kind.INLINE_FRAGMENT, typeCondition, selectionSet: selectionSet(fields) }];
  });
  return selectionSet([MARKER, ...branches]);
}

/** A document with one operation of these root fields, and no variable that they don't use. */
export function documentOf(
  operation: OperationDefinitionNode,
  set: SelectionSetNode,
  fragments: DocumentNode["definitions"] = [],
): DocumentNode {
  const part: OperationDefinitionNode = { ...operation, directives: [], selectionSet: set };
  const used = new Set<string>();
  for (const node of [set, ...fragments]) visit(node, { Variable: ({ name }) => void used.add(name.value) });
  const variableDefinitions = (operation.variableDefinitions ?? []).filter((v) => used.has(v.variable.name.value));
  return { kind: Kind.DOCUMENT, definitions: [{ ...part, variableDefinitions }, ...fragments] };
}

function fieldsOf(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLCompositeType,
  fields: Map<string, FieldNode[]>,
): FieldNode[] {
  return [...fields].flatMap(([key, nodes]) => {
    const [node] = nodes as [FieldNode];
    const alias = key === node.name.value ? undefined : ({ kind: Kind.NAME, value: key } as const);
    const { kind, name, arguments: given } = node;
    // Who reads the answer knows the type anyway.
    if (name.value === "__typename") return [];
    const field: GraphQLField<unknown, unknown> | undefined = isUnionType(type)
      ? undefined
      : type.getFields()[name.value];
    const named = field && getNamedType(field.type);
    if (!isCompositeType(named)) return [{ kind, alias, name, arguments: given }];
    const inner = nodes.flatMap((n) => n.selectionSet ?? []);
    return [{ kind, alias, name, arguments: given, selectionSet: normalSelection(schema, collector, named, inner) }];
  });
}

function selectionSet(selections: SelectionNode[]): SelectionSetNode {
  return { kind: Kind.SELECTION_SET, selections: selections.length > 0 ? selections : [MARKER] };
}
