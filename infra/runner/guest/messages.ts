/**
 * What a host agent and the init of a guest say over the guest's control socket: one JSON object a line. The host takes
 * every line of a guest as hostile input: it bounds their size and believes nothing that it can measure itself.
 */

/** Port in the guest on which init passes HTTP proxy connections on to the host. */
export const GUEST_PROXY_PORT = 3128;

/** Names of the sockets in the guest's run directory. */
export const CONTROL_SOCKET = "control.sock";
export const EGRESS_SOCKET = "egress.sock";

/** Longest line of a guest that the host reads. */
export const MAX_CONTROL_LINE_BYTES = 64 * 1024;

/** Lines from the host. */
export type ToInit =
  | {
      op: "start";
      command: string[];
      workingDirectory: string;
      env: Record<string, string>;
      /** File descriptors of init that become the command's stdout and stderr. */
      stdoutFd: number;
      stderrFd: number;
      /** Init listens on 127.0.0.1:3128 and passes connections on to the host's proxy. */
      proxy: boolean;
      /** `namespace`: a signal reaches every process of the PID namespace; `group`: the command's process group. */
      reach: "namespace" | "group";
    }
  | { op: "signal"; signal: "SIGTERM" | "SIGKILL" };

/** Lines from init. */
export type FromInit =
  /** Said before the command can do anything: whatever ends init from now on is the command's doing. */
  | { event: "starting" }
  | { event: "started" }
  /** The command could not be executed; `code` is an errno name such as `ENOENT`. */
  | { event: "not_started"; code: string; message: string }
  | { event: "exited"; code: number | null; signal: string | null };
