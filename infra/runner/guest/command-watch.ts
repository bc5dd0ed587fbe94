import { type GuestEnd, START_TIMEOUT_MS, type StartFailure } from "./guest.ts";
import type { FromInit } from "./messages.ts";
import { startFailureOf } from "./start-failure.ts";

/** What is known of a guest's command, from what init says and from what the host sees. The first word counts. */
export class CommandWatch {
  readonly started: Promise<StartFailure | null>;
  readonly #program: string;
  readonly #timer: NodeJS.Timeout;
  #settleStart: (failure: StartFailure | null) => void = () => {};
  #state: "starting" | "running" | "exited" = "starting";
  /** Init set about starting the command. Unless it says that this failed, the command ran. */
  #begun = false;
  #failure: StartFailure | null = null;
  #exit: { code: number | null; signal: string | null } | null = null;
  #beginListener: () => void = () => {};
  #exitListener: () => void = () => {};
  #timeoutListener: () => void = () => {};

  constructor(program: string) {
    this.#program = program;
    this.started = new Promise((resolve) => {
      this.#settleStart = resolve;
    });
    this.#timer = setTimeout(() => {
      this.over({ kind: "internal", message: `the guest did not start within ${START_TIMEOUT_MS} ms` });
      this.#timeoutListener();
    }, START_TIMEOUT_MS);
  }

  /** Called just before the command may run. */
  onBegin(listener: () => void): void {
    this.#beginListener = listener;
  }

  /** Called when the command is over, or never started. */
  onExit(listener: () => void): void {
    this.#exitListener = listener;
  }

  onTimeout(listener: () => void): void {
    this.#timeoutListener = listener;
  }

  get commandOver(): boolean {
    return this.#state === "exited";
  }

  hear(message: FromInit): void {
    if (message.event === "starting") {
      this.#begun = true;
      this.#beginListener();
    } else if (message.event === "started" && this.#state === "starting") {
      clearTimeout(this.#timer);
      this.#state = "running";
      this.#settleStart(null);
    } else if (message.event === "not_started" && this.#state === "starting") {
      this.fail(startFailureOf(message.code, this.#program));
      this.#exitListener();
    } else if (message.event === "exited" && this.#state === "running") {
      this.#state = "exited";
      this.#exit = { code: message.code, signal: message.signal };
      this.#exitListener();
    }
  }

  /** The host's own reason why the command does not start; without effect once it runs. */
  fail(failure: StartFailure): void {
    if (this.#state !== "starting") return;
    clearTimeout(this.#timer);
    this.#state = "exited";
    this.#failure = failure;
    this.#settleStart(failure);
  }

  /**
   * Nothing more will be heard. `unexplained` is why the command never started, if nobody said why. One that silenced
   * init in its first moments did start.
   */
  over(unexplained: StartFailure): void {
    if (!this.#begun) this.fail(unexplained);
    if (this.#state !== "starting") return;
    clearTimeout(this.#timer);
    this.#state = "exited";
    this.#settleStart(null);
  }

  /** What to report, once `over`. A command whose end nobody told of went down with its namespace. */
  end(outOfMemory: boolean): GuestEnd {
    if (this.#failure) return { code: null, signal: null, oom: false, startFailure: this.#failure };
    const exit = this.#exit ?? { code: null, signal: "SIGKILL" };
    const oom = outOfMemory && exit.code !== 0;
    // What a shell would say of a command that the kernel killed for memory.
    if (oom && exit.signal === "SIGKILL") return { code: 137, signal: null, oom, startFailure: null };
    return { ...exit, oom, startFailure: null };
  }
}
