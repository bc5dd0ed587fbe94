import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { ASSET } from "./asset.refusals.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const FORBIDDEN = /[\u0000-\u001f\u007f/\\\ud800-\udfff]/u;

/** A file name that can be one on a runner as it is; refused when it is a path, empty, too long or not one line. */
export function requireAssetName(name: string): string {
  const fits = name !== "" && name !== "." && name !== ".." && Buffer.byteLength(name) <= LIMITS.assetNameBytes;
  if (!fits || FORBIDDEN.test(name))
    throw new Refused(ASSET.invalid_import, {
      field: "/name",
      message: `An asset's name is a file name of 1 to ${LIMITS.assetNameBytes} bytes without slashes and control characters.`,
    });
  return name;
}
