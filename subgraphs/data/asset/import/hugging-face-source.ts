import { Refused } from "../../../../infra/kernel/refusal.ts";
import type { ArchiveEntry } from "../archive/entry.ts";
import { safePath } from "../archive/entry-guard.ts";
import { ASSET } from "../asset.refusals.ts";
import { tooLarge } from "../byte-meter.ts";
import { isDataFile } from "./data-files.ts";
import { globMatcher } from "./glob.ts";
import { type ListedFile, listFiles } from "./hugging-face-files.ts";
import type { OpenedSource, SourceAsk, SourceDeps } from "./open-source.ts";
import { readJson, requireAnswer, requireRevision } from "./source-answer.ts";
import type { HuggingFaceRequest } from "./source-request.ts";
import { verified } from "./verified.ts";

/** The chosen files of a dataset or model at one commit, one after the other, each checked against the listing. */
export async function openHuggingFace(
  deps: SourceDeps,
  source: HuggingFaceRequest,
  ask: SourceAsk,
): Promise<OpenedSource> {
  const { origins, limits } = deps;
  const get = async (url: URL) =>
    requireAnswer(
      await deps.fetch.get(url, {
        authorization: ask.token ? `Bearer ${ask.token}` : undefined,
        signal: ask.signal,
      }),
    );
  const api = `${origins.huggingFace}/api/${source.type}/${source.repo}`;
  const about = await get(new URL(`${api}/revision/${encodeURIComponent(source.ref)}?expand=sha`));
  const revision = requireRevision(((await readJson(about)) as { sha?: unknown } | null)?.sha, about.url);
  const listed = await listFiles(get, new URL(`${api}/tree/${revision}?recursive=true`));
  const files = chosen(listed, source.files);
  for (const { path } of files) safePath(path); // before it becomes part of an address
  if (files.length > limits.archive.files)
    throw new Refused(ASSET.too_many_files, { message: `An import may hold ${limits.archive.files} files.` });
  if (files.reduce((sum, file) => sum + file.bytes, 0) > limits.importBytes) throw tooLarge(limits.importBytes);

  const base = source.type === "datasets" ? `${origins.huggingFace}/datasets` : origins.huggingFace;
  const download = (file: ListedFile) => {
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    return get(new URL(`${base}/${source.repo}/resolve/${revision}/${path}`));
  };
  return { revision, content: { as: "entries", entries: entriesOf(files, download, ask) } };
}

function chosen(files: readonly ListedFile[], patterns: readonly string[] | null): ListedFile[] {
  const matchers = patterns?.map(globMatcher);
  const found = files.filter(({ path }) => (matchers ? matchers.some((fits) => fits(path)) : isDataFile(path)));
  if (found.length === 0)
    throw new Refused(ASSET.source_unavailable, {
      message: patterns
        ? "No file of the source fits the patterns."
        : "The source has no file with a known data ending.",
      fix: "Name the files to take with patterns.",
    });
  return found;
}

async function* entriesOf(
  files: readonly ListedFile[],
  download: (file: ListedFile) => Promise<{ body: AsyncIterable<Uint8Array> }>,
  ask: SourceAsk,
): AsyncGenerator<ArchiveEntry> {
  for (const file of files) {
    const { body } = await download(file);
    const content = verified(ask.meter.through(body), file);
    yield { path: file.path, kind: "file", executable: false, bytes: file.bytes, content };
  }
}
