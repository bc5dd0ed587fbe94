export class Unsupported extends Error {}
export interface Machine {
  platform: string;
  arch: string;
  /** Version without the leading `v`. */
  node: string;
  musl: boolean;
}
export function checkMachine(machine?: Machine): void;
