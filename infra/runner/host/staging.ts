import { chownSync, createReadStream, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../kernel/limits.ts";
import type { OrderSpec, StagedObject } from "../protocol.ts";
import { download, type ObjectAccess } from "./intake-objects.ts";
import { safePath, unpackTar, writeFile } from "./safe-tar.ts";

/** Files that a staged archive may hold beside its folders. */
const ENTRIES = 2 * LIMITS.assetFiles;

export interface StagingPlace {
  /** The guest's workspace with its skeleton. */
  workspace: string;
  /** Where an object lies before it is unpacked; out of the guest's reach. */
  downloadFile: string;
  /** Owner of what is staged; null for the host agent's own. */
  uid: number | null;
}

/** Brings the source and all inputs of an order into its workspace. Throws with what failed, or when `signal` aborts. */
export async function stage(
  spec: OrderSpec,
  place: StagingPlace,
  from: ObjectAccess,
  signal: AbortSignal,
): Promise<void> {
  let roomBytes = spec.limits.diskBytes;
  const bring = async (object: StagedObject, folder: string) => {
    await bringInto(object, folder, roomBytes, place, from, signal);
    roomBytes -= object.bytes;
  };
  if (spec.source) await bring(spec.source, join(place.workspace, "code"));
  for (const input of spec.inputs) {
    const folder = join(place.workspace, "inputs", oneName(input.name));
    mkdirSync(folder);
    if (place.uid !== null) chownSync(folder, place.uid, place.uid);
    await bring(input.object, folder);
  }
}

async function bringInto(
  object: StagedObject,
  folder: string,
  roomBytes: number,
  place: StagingPlace,
  from: ObjectAccess,
  signal: AbortSignal,
): Promise<void> {
  const { downloadFile, uid } = place;
  try {
    if (object.bytes > roomBytes) throw new Error(`has ${object.bytes} bytes, more than is left of the disk limit`);
    await download(from, object, downloadFile, signal);
    const content = createReadStream(downloadFile);
    if (object.format === "tar") await unpackTar(content, folder, { files: ENTRIES, bytes: roomBytes, uid });
    else await writeFile(content, join(folder, oneName(object.name)), false, uid);
  } catch (error) {
    throw new Error(`${object.name}: ${(error as Error).message}`, { cause: error });
  } finally {
    await rm(downloadFile, { force: true });
  }
}

/** Throws for anything but the plain name of one file or folder. */
function oneName(name: string): string {
  const [first, ...rest] = safePath(name);
  if (first === undefined || rest.length > 0) throw new Error(`${JSON.stringify(name)} is no file name`);
  return first;
}
