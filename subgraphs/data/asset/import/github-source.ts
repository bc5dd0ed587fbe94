import type { OpenedSource, SourceAsk, SourceDeps } from "./open-source.ts";
import { readText, requireAnswer, requireRevision, requireSize } from "./source-answer.ts";
import type { GithubRequest } from "./source-request.ts";

/** A repository's archive at one commit: the ref is resolved first, so what is fetched and what is noted are the same. */
export async function openGithub(deps: SourceDeps, source: GithubRequest, ask: SourceAsk): Promise<OpenedSource> {
  const { fetch, origins, limits } = deps;
  const repository = `${origins.github}/repos/${source.owner}/${source.repo}`;
  const authorization = ask.token ? `Bearer ${ask.token}` : undefined;
  const get = async (path: string, accept: string) =>
    requireAnswer(
      await fetch.get(new URL(`${repository}/${path}`), {
        authorization,
        headers: { accept, "x-github-api-version": "2022-11-28" },
        signal: ask.signal,
      }),
    );
  const commit = await get(`commits/${pathOfRef(source.ref)}`, "application/vnd.github.sha");
  const revision = requireRevision(await readText(commit, 1_024), commit.url);
  const archive = await get(`tarball/${revision}`, "application/vnd.github+json");
  await requireSize(archive, limits.importBytes);
  return {
    revision,
    content: { as: "archive", kind: "tar.gz", bytes: ask.meter.through(archive.body), stripTop: true },
  };
}

/** Slashes of a ref stay: they are part of the path there. */
function pathOfRef(ref: string): string {
  return ref.split("/").map(encodeURIComponent).join("/");
}
