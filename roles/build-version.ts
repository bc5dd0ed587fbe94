import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { PROJECT_ROOT, projectFile } from "../infra/telemetry/project-root.ts";

/**
 * The release with the fingerprint of the build, such as `0.1.0+3f2a…`: two builds of one release differ, so that a
 * host agent of an older build is known for one.
 */
export function buildVersion(): string {
  const { version } = JSON.parse(readFileSync(projectFile("package.json"), "utf8")) as { version: string };
  // The build's folder is the first one below the project that this file lies in; sources have no stamp.
  const [folder = ""] = path.relative(PROJECT_ROOT, import.meta.dirname).split(path.sep);
  const stamp = projectFile(folder, ".sources");
  return existsSync(stamp) ? `${version}+${readFileSync(stamp, "utf8").slice(0, 12)}` : version;
}
