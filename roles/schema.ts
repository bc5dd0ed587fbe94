import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { projectFile } from "../infra/telemetry/project-root.ts";
import { composeSupergraph } from "./compose-supergraph.ts";
import { buildSubgraph, SUBGRAPH_NAMES } from "./graph.ts";

/** The published schemas by file, below `schema/`. */
export function schemaFiles(): Map<string, string> {
  const subgraphs = SUBGRAPH_NAMES.map(buildSubgraph);
  return new Map([
    ...subgraphs.map(({ name, sdl }) => [path.join("subgraphs", `${name}.graphql`), `${sdl.trimEnd()}\n`] as const),
    ["supergraph.graphql", `${composeSupergraph(subgraphs).trimEnd()}\n`] as const,
  ]);
}

/** Writes them; a test keeps the checked-in files equal to what the code prints. */
export function writeSchemas(): void {
  for (const [file, text] of schemaFiles()) {
    const target = projectFile("schema", file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}
