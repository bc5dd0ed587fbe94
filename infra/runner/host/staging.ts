import { createHash } from "node:crypto";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../kernel/limits.ts";
import type { OrderSpec, StagedObject } from "../protocol.ts";
import { safePath, unpackTar, writeFile } from "./safe-tar.ts";

const RETRIES = 40;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 3_000;

/** Where staged bytes come from. */
export interface ObjectSource {
  /** Base URL of intake as of now; it may change while the platform restarts. */
  intakeUrl(): string;
  session: string;
}

/** Bytes that could not be had or are not what the order says; retrying is pointless. */
export class StagingFailure extends Error {}

/** Fetches the source and all inputs of an order into its workspace. Throws `StagingFailure`, or when `signal` aborts. */
export async function stage(
  spec: OrderSpec,
  workspace: string,
  uid: number | null,
  source: ObjectSource,
  signal: AbortSignal,
): Promise<void> {
  const bytes = spec.limits.diskBytes;
  if (spec.source) await fetchInto(spec.orderId, spec.source, join(workspace, "code"), { uid, bytes }, source, signal);
  for (const input of spec.inputs) {
    const [name, ...rest] = safePath(input.name);
    if (name === undefined || rest.length > 0)
      throw new StagingFailure(`input name ${JSON.stringify(input.name)} is no file name`);
    const folder = join(workspace, "inputs", name);
    mkdirSync(folder);
    if (uid !== null) chownSync(folder, uid, uid);
    await fetchInto(spec.orderId, input.object, folder, { uid, bytes }, source, signal);
  }
}

interface Destination {
  uid: number | null;
  bytes: number;
}

async function fetchInto(
  orderId: string,
  object: StagedObject,
  folder: string,
  to: Destination,
  source: ObjectSource,
  signal: AbortSignal,
): Promise<void> {
  if (object.bytes > to.bytes)
    throw new StagingFailure(`${object.name} has ${object.bytes} bytes, more than the disk limit of ${to.bytes}`);
  const response = await request(orderId, object, source, signal);
  const counted = verified(object);
  const body = Readable.fromWeb(response.body as import("node:stream/web").ReadableStream).pipe(counted.stream);
  try {
    if (object.format === "tar")
      await unpackTar(body, folder, { files: 2 * LIMITS.assetFiles, bytes: to.bytes, uid: to.uid });
    else await writeFile(body, join(folder, oneName(object.name)), false, to.uid);
    counted.check();
  } catch (error) {
    if (signal.aborted) throw error;
    throw new StagingFailure(`${object.name}: ${(error as Error).message}`);
  }
}

/** Asks again while intake is away: a platform that restarts costs a guest nothing. */
async function request(
  orderId: string,
  object: StagedObject,
  source: ObjectSource,
  signal: AbortSignal,
): Promise<Response> {
  for (let attempt = 0, waitMs = FIRST_RETRY_MS; ; attempt++, waitMs = Math.min(LAST_RETRY_MS, waitMs * 2)) {
    let refusal: string;
    try {
      const url = `${source.intakeUrl()}/orders/${encodeURIComponent(orderId)}/objects/${object.sha256}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${source.session}` }, signal });
      if (response.ok) return response;
      await response.body?.cancel();
      refusal = `intake answered ${response.status}`;
      if (response.status < 500 && response.status !== 408 && response.status !== 429)
        throw new StagingFailure(`${object.name}: ${refusal}`);
    } catch (error) {
      if (error instanceof StagingFailure || signal.aborted) throw error;
      refusal = (error as Error).message;
    }
    if (attempt >= RETRIES) throw new StagingFailure(`${object.name}: ${refusal}`);
    await sleep(waitMs, undefined, { signal });
  }
}

/** Passes bytes on and knows at the end whether they were the right ones. Nothing has run by then. */
function verified(object: StagedObject): { stream: Transform; check: () => void } {
  const hash = createHash("sha256");
  let bytes = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(bytes > object.bytes ? new Error("longer than announced") : null, chunk);
    },
  });
  const check = () => {
    if (bytes !== object.bytes) throw new Error(`${bytes} bytes came instead of ${object.bytes}`);
    if (hash.digest("hex") !== object.sha256) throw new Error("its SHA-256 differs");
  };
  return { stream, check };
}

function oneName(name: string): string {
  const parts = safePath(name);
  if (parts.length !== 1) throw new StagingFailure(`${JSON.stringify(name)} is no file name`);
  return parts[0]!;
}
