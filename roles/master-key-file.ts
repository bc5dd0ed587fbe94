import { randomBytes, randomUUID } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import path from "node:path";

const KEY_BYTES = 32;

/** The master key's file, and what a change of the key keeps beside it. */
function masterKeyFiles(dataDir: string) {
  const current = path.join(dataDir, "master.key");
  return {
    current,
    /** The key that a change under way goes to. */
    next: `${current}.next`,
    /** The key before the last change; back-ups from before it need it. */
    old: `${current}.old`,
  };
}

/** Reads the key file, or makes it at the first start. Two starts at once end with one key. */
export function masterKeyOf(dataDir: string): Buffer {
  const { current } = masterKeyFiles(dataDir);
  return readKey(current) ?? makeKey(current);
}

/** Keys of the data folder that only open what they once wrapped: of a change under way, and from before the last one. */
export function otherMasterKeysOf(dataDir: string): Buffer[] {
  const { next, old } = masterKeyFiles(dataDir);
  return [next, old].flatMap((file) => readKey(file) ?? []);
}

/** The file's key when there is one; it is not made. */
export function existingMasterKeyOf(dataDir: string): Buffer | null {
  return readKey(masterKeyFiles(dataDir).current);
}

/** The key that a change goes to: a new one, or that of a change which was begun before. */
export function nextMasterKeyOf(dataDir: string): Buffer {
  const { next } = masterKeyFiles(dataDir);
  return readKey(next) ?? makeKey(next);
}

/** Makes the next key the current one; the one before stays in a file of its own. Whole at every moment. */
export function adoptNextMasterKey(dataDir: string): void {
  const { current, next, old } = masterKeyFiles(dataDir);
  const kept = `${old}.${randomUUID()}`;
  copyFileSync(current, kept);
  flush(kept);
  renameSync(kept, old);
  renameSync(next, current);
  flush(dataDir);
}

function readKey(file: string): Buffer | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const key = Buffer.from(text.trim(), "base64");
  if (key.length !== KEY_BYTES)
    throw new Error(`${file} does not hold a key of ${KEY_BYTES} bytes; restore it from a back-up`);
  return key;
}

/** Writes a new key aside, onto the disk, and gives it its name unless another process was faster. */
function makeKey(file: string): Buffer {
  const folder = path.dirname(file);
  mkdirSync(folder, { recursive: true });
  // Not the process's number: in containers that share the folder, everybody has the same one.
  const aside = `${file}.${randomUUID()}`;
  const handle = openSync(aside, "w", 0o600);
  try {
    writeSync(handle, `${randomBytes(KEY_BYTES).toString("base64")}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(aside);
  }
  flush(folder);
  return readKey(file)!;
}

function flush(file: string): void {
  const handle = openSync(file, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
