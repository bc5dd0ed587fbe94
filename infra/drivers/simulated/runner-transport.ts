import type { HostFrame, IntakeFrame } from "../../runner/protocol.ts";

/** A host's stream to intake, without a network in between. */
export interface RunnerStream {
  receive(frame: HostFrame): void | Promise<void>;
  /** The host's side is gone. */
  closed(): void;
}

/** Opens a stream: `send` gets intake's frames, `close` is called when intake ends it. */
export type RunnerConnect = (send: (frame: IntakeFrame) => void, close: () => void) => RunnerStream;
