import { readFileSync } from "node:fs";

/** A manifest of registered operations, as Apollo's manifest tools write it. */
interface Manifest {
  format: string;
  version: number;
  operations: { id: string; body: string }[];
}

/** The operations of a manifest file by the SHA-256 of their text. Throws with the file's name when it is not one. */
export function readPersistedOperations(file: string): Map<string, string> {
  let manifest: Manifest;
  try {
    manifest = JSON.parse(readFileSync(file, "utf8")) as Manifest;
  } catch (error) {
    throw new Error(`NODUS_PERSISTED_OPERATIONS: ${file} cannot be read: ${(error as Error).message}`);
  }
  if (
    manifest.format !== "apollo-persisted-query-manifest" ||
    manifest.version !== 1 ||
    !Array.isArray(manifest.operations)
  )
    throw new Error(`NODUS_PERSISTED_OPERATIONS: ${file} is no apollo-persisted-query-manifest of version 1`);
  return new Map(manifest.operations.map(({ id, body }) => [id, body]));
}
