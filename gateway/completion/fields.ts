import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  type SelectionSetNode,
} from "graphql";

/** Whether a Boolean variable of this run is true. */
export type IsTrue = (variable: string) => boolean;

/** Collects the fields that selections give an object of one type: merged by response key, in the order of the answer. */
export class FieldCollector {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #isTrue: IsTrue;

  constructor(schema: GraphQLSchema, document: DocumentNode, isTrue: IsTrue) {
    this.#schema = schema;
    this.#fragments = new Map(
      document.definitions.flatMap((d) => (d.kind === Kind.FRAGMENT_DEFINITION ? [[d.name.value, d]] : [])),
    );
    this.#isTrue = isTrue;
  }

  /** Field nodes by response key. */
  collect(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
    const fields = new Map<string, FieldNode[]>();
    const visited = new Set<string>();
    const walk = (set: SelectionSetNode): void => {
      for (const selection of set.selections) {
        if (!this.#included(selection.directives)) continue;
        if (selection.kind === Kind.FIELD) {
          const key = (selection.alias ?? selection.name).value;
          const nodes = fields.get(key);
          if (nodes) nodes.push(selection);
          else fields.set(key, [selection]);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) {
          if (this.#applies(selection.typeCondition?.name.value, type)) walk(selection.selectionSet);
        } else if (!visited.has(selection.name.value)) {
          visited.add(selection.name.value);
          const fragment = this.#fragments.get(selection.name.value);
          if (fragment && this.#applies(fragment.typeCondition.name.value, type)) walk(fragment.selectionSet);
        }
      }
    };
    for (const set of sets) walk(set);
    return fields;
  }

  /** True when the selections give every possible type of an interface or union the same fields. */
  isUniform(type: GraphQLAbstractType, sets: readonly SelectionSetNode[]): boolean {
    const possible = this.#schema.getPossibleTypes(type);
    const uniform = (set: SelectionSetNode): boolean =>
      set.selections.every((selection) => {
        if (selection.kind === Kind.FIELD || !this.#included(selection.directives)) return true;
        const fragment =
          selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#fragments.get(selection.name.value);
        if (!fragment) return true;
        const condition = fragment.typeCondition?.name.value;
        return possible.every((object) => this.#applies(condition, object)) && uniform(fragment.selectionSet);
      });
    return sets.every(uniform);
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (!condition || condition === type.name) return true;
    const named = this.#schema.getType(condition);
    return isAbstractType(named) && this.#schema.isSubType(named, type);
  }

  #included(directives: readonly DirectiveNode[] = []): boolean {
    for (const { name, arguments: args } of directives) {
      if (name.value !== "skip" && name.value !== "include") continue;
      const value = args?.[0]?.value;
      const isOn =
        value?.kind === Kind.VARIABLE ? this.#isTrue(value.name.value) : value?.kind === Kind.BOOLEAN && value.value;
      if (isOn === (name.value === "skip")) return false;
    }
    return true;
  }
}
