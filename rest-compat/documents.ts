import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type DefinitionNode, type DocumentNode, type FragmentDefinitionNode, Kind, parse, visit } from "graphql";

/** The documents of `schema/operations`, by operationId, each with the fragments that it spreads. */
export type Documents = ReadonlyMap<string, DocumentNode>;

/** The file in each domain's folder that holds one fragment per wire type. */
const FRAGMENTS = "fragments.graphql";

/** Reads and parses every document once; names the file of one that does not parse or spreads an unknown fragment. */
export function readDocuments(folder: string): Documents {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".graphql"));
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const file of files.filter((f) => basename(f) === FRAGMENTS))
    for (const definition of definitionsOf(folder, file))
      if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  const documents = new Map<string, DocumentNode>();
  for (const file of files.filter((f) => basename(f) !== FRAGMENTS)) {
    const definitions = definitionsOf(folder, file);
    documents.set(basename(file, ".graphql"), {
      kind: Kind.DOCUMENT,
      definitions: [...definitions, ...spreads(definitions, fragments, file)],
    });
  }
  return documents;
}

function definitionsOf(folder: string, file: string): readonly DefinitionNode[] {
  try {
    return parse(readFileSync(join(folder, file), "utf8"), { noLocation: true }).definitions;
  } catch (error) {
    throw new Error(`schema/operations/${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** The fragments that definitions spread, and those that these spread in turn. */
function spreads(
  definitions: readonly DefinitionNode[],
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  file: string,
): FragmentDefinitionNode[] {
  const found = new Map<string, FragmentDefinitionNode>();
  const look = (node: DefinitionNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value: name } }) => {
        if (found.has(name)) return;
        const fragment = fragments.get(name);
        if (!fragment) throw new Error(`schema/operations/${file}: there is no fragment ${name}`);
        found.set(name, fragment);
        look(fragment);
      },
    });
  };
  definitions.forEach(look);
  return [...found.values()];
}
