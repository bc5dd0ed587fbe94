import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { LIMITS } from "../infra/kernel/limits.ts";
import type { Variables } from "./request.ts";

/** What an operation is like, before it is validated: fragments are counted where they are spread. */
export interface Measure {
  /** Levels of fields. */
  readonly depth: number;
  readonly aliases: number;
  readonly rootFields: number;
  /** How many values the answer may hold at most, as far as page sizes say. */
  cost(variables: Variables): number;
}

/** Items assumed in a list that takes no page size. */
const ASSUMED_ITEMS = 10;

type Cost = (variables: Variables) => number;
type Part = { depth: number; aliases: number; fields: number; cost: Cost };
const NOTHING: Part = { depth: 0, aliases: 0, fields: 0, cost: () => 0 };

/** Measures one operation in time linear in the document. */
export function measure(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Measure {
  const root = schema.getRootType(operation.operation);
  if (!root) return { depth: 0, aliases: 0, rootFields: 0, cost: () => 0 };
  const { depth, aliases, fields, cost } = new Ruler(schema, document).set(operation.selectionSet, root);
  return { depth, aliases, rootFields: fields, cost };
}

class Ruler {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, { part: Part | null; set: SelectionSetNode; type: string }>;

  constructor(schema: GraphQLSchema, document: DocumentNode) {
    this.#schema = schema;
    this.#fragments = new Map(
      document.definitions.flatMap((d) =>
        d.kind === Kind.FRAGMENT_DEFINITION
          ? [[d.name.value, { part: null, set: d.selectionSet, type: d.typeCondition.name.value }]]
          : [],
      ),
    );
  }

  set(set: SelectionSetNode, type: GraphQLCompositeType): Part {
    const parts = set.selections.map((selection) => {
      if (selection.kind === Kind.FIELD) return this.#field(selection, type);
      if (selection.kind === Kind.INLINE_FRAGMENT)
        return this.#on(selection.typeCondition?.name.value, selection.selectionSet, type);
      return this.#spread(selection.name.value, type);
    });
    return together(parts);
  }

  #on(condition: string | undefined, set: SelectionSetNode, type: GraphQLCompositeType): Part {
    const named = condition ? this.#schema.getType(condition) : type;
    return isCompositeType(named) ? this.set(set, named) : NOTHING;
  }

  #spread(name: string, type: GraphQLCompositeType): Part {
    const fragment = this.#fragments.get(name);
    if (!fragment) return NOTHING;
    if (!fragment.part) {
      fragment.part = NOTHING; // while it is open: a fragment inside itself counts once, validation refuses it
      const part = this.#on(fragment.type, fragment.set, type);
      fragment.part = { ...part, cost: oncePerRun(part.cost) };
    }
    return fragment.part;
  }

  #field(node: FieldNode, type: GraphQLCompositeType): Part {
    const aliases = node.alias ? 1 : 0;
    const leaf: Part = { depth: 1, aliases, fields: 1, cost: () => 1 };
    // The graph's own types are bounded by a validation rule of their own.
    if (node.name.value.startsWith("__")) return leaf;
    const field = isObjectType(type) || isInterfaceType(type) ? type.getFields()[node.name.value] : undefined;
    const named = field && getNamedType(field.type);
    if (!node.selectionSet || !isCompositeType(named)) return leaf;
    const inner = this.set(node.selectionSet, named);
    const items = itemsOf(field!, node.arguments ?? [], type);
    return {
      depth: inner.depth + 1,
      aliases: aliases + inner.aliases,
      fields: 1,
      cost: (variables) => 1 + items(variables) * inner.cost(variables),
    };
  }
}

function together(parts: Part[]): Part {
  return {
    depth: parts.reduce((most, part) => Math.max(most, part.depth), 0),
    aliases: parts.reduce((sum, part) => sum + part.aliases, 0),
    fields: parts.reduce((sum, part) => sum + part.fields, 0),
    cost: (variables) => parts.reduce((sum, part) => sum + part.cost(variables), 0),
  };
}

/** Fragments that spread each other twice would otherwise be added up exponentially often. */
function oncePerRun(cost: Cost): Cost {
  let seen: Variables | undefined;
  let value = 0;
  return (variables) => {
    if (seen !== variables) value = cost(variables);
    seen = variables;
    return value;
  };
}

/** How many items a field may give: its page size, or an assumption for a list without one. */
function itemsOf(
  field: GraphQLField<unknown, unknown>,
  given: readonly ArgumentNode[],
  parent: GraphQLCompositeType,
): Cost {
  if (!field.args.some((a) => a.name === "first")) {
    // The items of a connection were counted at the field that took the page size.
    const isPlainList =
      isListType(isNonNullType(field.type) ? field.type.ofType : field.type) && !parent.name.endsWith("Connection");
    return () => (isPlainList ? ASSUMED_ITEMS : 1);
  }
  const value = given.find((a) => a.name.value === "first")?.value;
  if (value?.kind === Kind.INT) return () => pageSize(Number(value.value));
  if (value?.kind === Kind.VARIABLE) return (variables) => pageSize(variables[value.name.value]);
  return () => LIMITS.listPageDefault;
}

/** A page size as it counts; a wrong one is refused later, by who reads it. */
function pageSize(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : LIMITS.listPageDefault;
}
