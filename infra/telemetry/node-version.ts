/** The oldest major release of Node that has all that the compiled program uses. */
const OLDEST_NODE_MAJOR = 24;

/** Why the program cannot run on this Node, such as `20.20.2`; null when it can. */
export function nodeProblem(version: string): string | null {
  if (Number.parseInt(version, 10) >= OLDEST_NODE_MAJOR) return null;
  return `Nodus runs on Node ${OLDEST_NODE_MAJOR}, and this is ${version}: "node start.mjs" in the project's folder finds the right one.`;
}
