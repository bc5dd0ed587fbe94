import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { LIMITS } from "../../kernel/limits.ts";
import type { OrderSpec } from "../protocol.ts";
import { REASON_LENGTH } from "./exit-record.ts";
import { type ObjectAccess, upload } from "./intake-objects.ts";
import { mediaTypeOf } from "./media-type.ts";
import { filesBelow, openRegularFile, REBUILDABLE, RUNNER_PRIVATE, tarOf } from "./output-tar.ts";
import { safePath } from "./safe-tar.ts";

export type OutputFact =
  | { type: "output"; name: string; sha256: string; bytes: number; media: string; isTar: boolean }
  | { type: "output_failed"; name: string; reason: string };

interface Output {
  name: string;
  media: string;
  isTar: boolean;
  bytes: number;
  /** Fresh content, once per attempt. */
  open: () => Promise<Readable>;
}

/** Reason why one output can't be had; said to the user. */
class OutputFailure extends Error {}

/**
 * Uploads what an order declared, or non-empty `outputs/` and `results/` when it declared nothing. Nothing of the guest
 * runs any more, so what is found does not change. Retries for as long as intake is away; ends early when aborted.
 * @param done names that an earlier life of the host agent has dealt with
 */
export async function collectOutputs(
  spec: OrderSpec,
  workspace: string,
  to: ObjectAccess,
  done: ReadonlySet<string>,
  record: (fact: OutputFact) => void,
  signal: AbortSignal,
): Promise<void> {
  const code = join(workspace, "code");
  const wanted =
    spec.outputs === null
      ? ["outputs", "results"].map((path) => ({ name: `${path}.tar`, path }))
      : Object.entries(spec.outputs).map(([name, path]) => ({ name, path }));
  let roomBytes = spec.limits.outputBytes;
  for (const { name, path } of wanted.filter((output) => !done.has(output.name))) {
    try {
      const output = await find(code, name, path, spec.outputs !== null);
      if (output === null) continue;
      if (output.bytes > roomBytes)
        throw new OutputFailure(`larger than the ${spec.limits.outputBytes} bytes that all outputs together may have`);
      roomBytes -= output.bytes;
      const stored = await upload(to, output.open, signal);
      record({ type: "output", name, ...stored, media: output.media, isTar: output.isTar });
    } catch (error) {
      if (signal.aborted) return;
      record({ type: "output_failed", name, reason: (error as Error).message.slice(0, REASON_LENGTH) });
    }
  }
}

/** Null where nothing was declared and there is nothing. */
async function find(code: string, name: string, path: string, declared: boolean): Promise<Output | null> {
  const parts = safePath(path);
  const kind = await kindOf(code, parts);
  const place = join(code, ...parts);
  if (kind === "folder") {
    const entries = await filesBelow(place, declared ? RUNNER_PRIVATE : REBUILDABLE, LIMITS.assetFiles);
    if (entries.length === 0 && !declared) return null;
    const bytes = entries.reduce((total, entry) => total + entry.bytes, 0);
    return { name, media: "application/x-tar", isTar: true, bytes, open: async () => tarOf(entries) };
  }
  if (!declared) return null;
  if (kind === "absent") throw new OutputFailure(`${path} does not exist`);
  if (kind === "other") throw new OutputFailure(`${path} is a link or no regular file`);
  const file = await openRegularFile(place);
  file.content.destroy();
  return {
    name,
    media: mediaTypeOf(place),
    isTar: false,
    bytes: file.bytes,
    open: async () => (await openRegularFile(place)).content,
  };
}

/** Looks at each part without following links: a link among the folders would lead out of the workspace. */
async function kindOf(code: string, parts: string[]): Promise<"file" | "folder" | "absent" | "other"> {
  let place = code;
  for (const [index, part] of parts.entries()) {
    place = join(place, part);
    const stats = await lstat(place).catch(() => null);
    if (stats === null) return "absent";
    const last = index === parts.length - 1;
    if (last && stats.isFile()) return "file";
    if (!stats.isDirectory()) return "other";
  }
  return "folder";
}
