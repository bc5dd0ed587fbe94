import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { ASSET } from "./asset.refusals.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const FORBIDDEN = /[\u0000-\u001f\u007f/\\\ud800-\udfff]/u;

/** Whether a text can be a file name on a runner as it is: no path, not empty, not too long, one line. */
export function isAssetName(name: string): boolean {
  const fits = name !== "" && name !== "." && name !== ".." && Buffer.byteLength(name) <= LIMITS.assetNameBytes;
  return fits && !FORBIDDEN.test(name);
}

/** The name if it can be a file name; `invalid_import` otherwise. */
export function requireAssetName(name: string): string {
  if (!isAssetName(name))
    throw new Refused(ASSET.invalid_import, {
      field: "/name",
      message: `An asset's name is a file name of 1 to ${LIMITS.assetNameBytes} bytes without slashes and control characters.`,
    });
  return name;
}
