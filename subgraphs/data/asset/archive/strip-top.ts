import type { ArchiveEntry } from "./entry.ts";
import { safePath, unsafe } from "./entry-guard.ts";

/** Takes the one folder off that an archive of a repository holds everything in. Refuses an archive with anything beside it. */
export async function* withoutTop(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<ArchiveEntry, void, undefined> {
  let top: string | null = null;
  for await (const entry of entries) {
    const path = safePath(entry.path);
    const slash = path.indexOf("/");
    const first = slash < 0 ? path : path.slice(0, slash);
    top ??= first;
    if (first !== top || (slash < 0 && entry.kind === "file"))
      throw unsafe(entry.path, "lies beside the archive's top folder");
    if (slash < 0) continue; // the top folder itself
    yield { ...entry, path: path.slice(slash + 1) };
  }
}
