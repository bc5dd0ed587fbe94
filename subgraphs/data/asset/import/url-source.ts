import { Refused } from "../../../../infra/kernel/refusal.ts";
import { archiveKindOf } from "../archive/archive-kind.ts";
import { ASSET } from "../asset.refusals.ts";
import type { OpenedSource, SourceAsk, SourceDeps } from "./open-source.ts";
import { requireAnswer, requireSize } from "./source-answer.ts";
import { nameOf, type UrlRequest } from "./source-request.ts";

/** One file behind an address. Its name's ending, as in the address that was asked for, says whether it is unpacked. */
export async function openUrl(deps: SourceDeps, source: UrlRequest, ask: SourceAsk): Promise<OpenedSource> {
  const name = nameOf(source);
  const kind = archiveKindOf(name, "/url");
  const fetched = await requireAnswer(await deps.fetch.get(new URL(source.url), { signal: ask.signal }));
  await requireSize(fetched, deps.limits.importBytes);
  const encoding = fetched.headers["content-encoding"] ?? "identity";
  // Some servers call a compressed file an encoding of the plain one; its bytes are what its name says.
  if (encoding !== "identity" && !/\.(?:gz|tgz|zst|tzst|br)$/i.test(name)) {
    await fetched.discard();
    throw new Refused(ASSET.source_unavailable, {
      message: `${fetched.url.hostname} sends the file compressed although it was asked not to.`,
    });
  }
  const bytes = ask.meter.through(fetched.body);
  return { revision: null, content: kind ? { as: "archive", kind, bytes } : { as: "file", bytes } };
}
