import { writeFileSync } from "node:fs";
import path from "node:path";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { METHODS, readContract } from "../../rest-compat/contract.ts";
import { TABLE } from "../../rest-compat/table/table.ts";

/** A contract as made-up requests are judged by it. */
export interface FuzzedContract {
  readonly file: string;
  readonly served: readonly string[];
  /** Documented operations that this release does not serve: 501 is all that they answer, so they are not asked. */
  readonly unserved: readonly string[];
}

interface PathItem {
  [method: string]: { responses?: Record<string, unknown> };
}

/**
 * Writes the contract for made-up requests. Authentication, limits and faults go before any operation, so one that
 * documents a few statuses only has the general error for all others.
 */
export function writeFuzzedContract(folder: string): FuzzedContract {
  const contract = readContract(projectFile("schema", "contract", "openapi.json"));
  const document = structuredClone(contract.document) as { paths: Record<string, PathItem> };
  const unserved = [...contract.operations.keys()].filter((id) => !(id in TABLE));
  for (const item of Object.values(document.paths))
    for (const method of METHODS) {
      const operation = item[method];
      if (operation) operation.responses = { default: GENERAL_ERROR, ...operation.responses };
    }
  const file = path.join(folder, "contract.json");
  writeFileSync(file, JSON.stringify(document));
  return { file, served: Object.keys(TABLE), unserved };
}

const GENERAL_ERROR = {
  description: "The general error.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};
