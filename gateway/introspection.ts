import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  visit,
} from "graphql";

/** An operation taken apart: the router answers nothing of an operation that asks for types and data at once. */
export interface SplitOperation {
  /** The part for the subgraphs; null when only the graph itself is asked. */
  readonly data: DocumentNode | null;
  /** The part about the graph; null when there is none. */
  readonly types: DocumentNode | null;
}

const TYPE_FIELDS = new Set(["__schema", "__type"]);
const GRAPH_FIELDS = new Set([...TYPE_FIELDS, "__typename"]);

/** Takes a query with `__schema` or `__type` at its root apart; other operations stay as they are. */
export function splitIntrospection(document: DocumentNode, operation: OperationDefinitionNode): SplitOperation {
  if (operation.operation !== "query") return { data: document, types: null };
  const fields = rootFields(document, operation);
  const about = fields.filter(({ field }) => GRAPH_FIELDS.has(field.name.value));
  if (about.length === fields.length) return { data: null, types: document };
  if (!about.some(({ field }) => TYPE_FIELDS.has(field.name.value))) return { data: document, types: null };
  const data = fields.filter(({ field }) => !GRAPH_FIELDS.has(field.name.value));
  return { data: documentOf(document, operation, data), types: documentOf(document, operation, about) };
}

/** True for a query that reads nothing but the graph's own types. */
export function isIntrospectionOnly(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  return (
    operation.operation === "query" &&
    rootFields(document, operation).every(({ field }) => GRAPH_FIELDS.has(field.name.value))
  );
}

interface RootField {
  field: FieldNode;
  /** Directives of the fragments around it, outermost first. */
  around: readonly (readonly DirectiveNode[])[];
}

/** The fields at the root, those of fragments included. */
export function rootFields(document: DocumentNode, operation: OperationDefinitionNode): RootField[] {
  const fragments = new Map(
    document.definitions.flatMap((d) => (d.kind === Kind.FRAGMENT_DEFINITION ? [[d.name.value, d] as const] : [])),
  );
  const found: RootField[] = [];
  const open = new Set<string>();
  const walk = (selections: readonly SelectionNode[], around: RootField["around"]): void => {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        found.push({ field: selection, around });
        continue;
      }
      const inside = selection.directives?.length ? [...around, selection.directives] : around;
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        walk(selection.selectionSet.selections, inside);
        continue;
      }
      const name = selection.name.value;
      const fragment = fragments.get(name);
      if (!fragment || open.has(name)) continue; // a fragment inside itself: validation refuses it
      open.add(name);
      walk(fragment.selectionSet.selections, inside);
      open.delete(name);
    }
  };
  walk(operation.selectionSet.selections, []);
  return found;
}

function documentOf(source: DocumentNode, operation: OperationDefinitionNode, fields: RootField[]): DocumentNode {
  const selections = fields.map(({ field, around }) => around.reduceRight<SelectionNode>(wrap, field));
  const part: OperationDefinitionNode = { ...operation, selectionSet: { kind: Kind.SELECTION_SET, selections } };
  return { ...source, definitions: [part, ...fragmentsUsed(source, part)] };
}

function wrap(selection: SelectionNode, directives: readonly DirectiveNode[]): SelectionNode {
  return {
    kind: Kind.INLINE_FRAGMENT,
    directives,
    selectionSet: { kind: Kind.SELECTION_SET, selections: [selection] },
  };
}

function fragmentsUsed(source: DocumentNode, operation: OperationDefinitionNode) {
  const fragments = source.definitions.filter((d) => d.kind === Kind.FRAGMENT_DEFINITION);
  const used = new Set<string>();
  const find = (node: OperationDefinitionNode | (typeof fragments)[number]): void => {
    visit(node, {
      FragmentSpread({ name }) {
        if (used.has(name.value)) return;
        used.add(name.value);
        const fragment = fragments.find((f) => f.name.value === name.value);
        if (fragment) find(fragment);
      },
    });
  };
  find(operation);
  return fragments.filter((f) => used.has(f.name.value));
}
