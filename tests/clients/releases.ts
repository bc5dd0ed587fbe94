/** Releases of `nodus-compute` that are held to work: the newest of each line of 0.x that speaks this wire. */
export const RELEASES = ["0.11.0", "0.7.3", "0.5.3", "0.4.2", "0.3.7"] as const;
export type Release = (typeof RELEASES)[number];

export const CLIENT_PACKAGE = "nodus-compute";

/** The file of pins that installs a release. */
export function requirementsOf(release: Release): string {
  return `requirements-client-${release}.txt`;
}

/** The newest version below 1 of a list that is newest first; null where there is none. */
export function newestBeforeOne(versions: readonly string[]): string | null {
  return versions.find((version) => version.startsWith("0.")) ?? null;
}
