import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";
import type { ArchiveEntry, ArchiveLimits } from "./entry.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const FORBIDDEN_CHARACTERS = /[\u0000-\u001f\u007f\\\ufffd]/;

/**
 * Judges the entries of one archive, one after the other. Names that differ only in case are different files, as they
 * are on the Linux machines that unpack them; the same path twice, or a file where another entry needs a folder, is not.
 */
export class EntryGuard {
  readonly #limits: ArchiveLimits;
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();
  readonly #declared = new Set<string>();
  #bytes = 0;

  constructor(limits: ArchiveLimits) {
    this.#limits = limits;
  }

  /** The entry with its clean path; null when there is nothing to write for it. Throws a refusal for an unsafe one. */
  admit(entry: ArchiveEntry): ArchiveEntry | null {
    const path = safePath(entry.path);
    if (path === "") {
      if (entry.kind === "folder") return null; // the archive's root
      throw unsafe(entry.path, "has no name");
    }
    this.#claim(path, entry);
    if (this.#files.size > this.#limits.files || this.#folders.size > this.#limits.files)
      throw new Refused(ASSET.too_many_files, {
        message: `An archive may hold ${this.#limits.files} files and as many folders.`,
      });
    this.#bytes += entry.bytes;
    if (this.#bytes > this.#limits.bytes)
      throw new Refused(ASSET.asset_too_large, { message: `The content may be ${this.#limits.bytes} bytes in all.` });
    if (entry.kind === "folder" && this.#declared.has(path)) return null;
    if (entry.kind === "folder") this.#declared.add(path);
    return { ...entry, path };
  }

  #claim(path: string, entry: ArchiveEntry): void {
    for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
      const parent = path.slice(0, slash);
      if (this.#files.has(parent)) throw unsafe(entry.path, "lies inside a file");
      this.#folders.add(parent);
    }
    if (this.#files.has(path)) throw unsafe(entry.path, "appears twice");
    if (entry.kind === "folder") this.#folders.add(path);
    else if (this.#folders.has(path)) throw unsafe(entry.path, "is a file and a folder");
    else this.#files.add(path);
  }
}

/** A relative path without `.` and empty steps. Throws for one that leads out, is absolute, too long or not plain text. */
export function safePath(raw: string): string {
  if (raw.startsWith("/") || /^[A-Za-z]:[/\\]/.test(raw)) throw unsafe(raw, "is absolute");
  if (FORBIDDEN_CHARACTERS.test(raw))
    throw unsafe(raw, "has a backslash, a control character or a character that is not UTF-8");
  const steps = raw.split("/").filter((step) => step !== "" && step !== ".");
  if (steps.includes("..")) throw unsafe(raw, "leads out of the archive");
  const path = steps.join("/");
  if (Buffer.byteLength(path) > LIMITS.assetPathBytes || steps.length > LIMITS.assetPathDepth)
    throw unsafe(raw, `is longer than ${LIMITS.assetPathBytes} bytes or deeper than ${LIMITS.assetPathDepth} folders`);
  if (steps.some((step) => Buffer.byteLength(step) > 255)) throw unsafe(raw, "has a name longer than 255 bytes");
  return path;
}

/** A refusal that names the entry, in a spelling that is safe to print. */
export function unsafe(path: string, why: string): Refused {
  const shown = JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path);
  return new Refused(ASSET.unsafe_archive, { message: `The archive's entry ${shown} ${why}.` });
}
