import { GraphQLError } from "graphql";
import { refusalError } from "../infra/graphql/errors.ts";
import type { Clock } from "../infra/kernel/clock.ts";
import { Refused } from "../infra/kernel/refusal.ts";
import type { Graph, GraphRequest } from "./graph.ts";
import type { Keys } from "./keys.ts";
import type { GatewayPlugin, Outcome } from "./plugins/plugin.ts";
import { GATEWAY } from "./refusals.ts";
import type { Opened, Operation, Result } from "./request.ts";
import { endable, isStream, lastOnError, mapStream, type Stream } from "./stream.ts";

/** Runs operations with every plugin around them: the one way to the graph for HTTP, sockets and this process. */
export class Operations {
  readonly #graph: Graph;
  readonly #plugins: readonly GatewayPlugin[];
  readonly #keys: Keys;
  readonly #clock: Clock;

  constructor(graph: Graph, plugins: readonly GatewayPlugin[], keys: Keys, clock: Clock) {
    this.#graph = graph;
    this.#plugins = plugins;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Throws `Refused` when a plugin does not let the operation in. */
  async admit(operation: Operation): Promise<void> {
    for (const plugin of this.#plugins) await plugin.admit?.(operation);
  }

  /** Runs a query or mutation. Faults are in the result, masked; this never rejects. */
  async run(operation: Operation): Promise<Result> {
    const ended = this.#start(operation);
    const result = this.#leaving(operation, await this.#attempt(() => this.#graph.run(asked(operation))));
    ended(codesOf(result), 1);
    return result;
  }

  /** Opens a subscription. It ends with a last result when the actor's key does. */
  async open(operation: Operation): Promise<Opened> {
    const ended = this.#start(operation);
    const opened = await this.#attempt<Opened>(() => this.#graph.open(asked(operation)));
    if (!isStream(opened)) {
      const result = this.#leaving(operation, opened);
      ended(codesOf(result), 0);
      return result;
    }
    return this.#living(operation, opened as Stream<Result>, ended);
  }

  #living(
    operation: Operation,
    source: Stream<Result>,
    ended: (codes: string[], results: number) => void,
  ): Stream<Result> {
    let results = 0;
    const codes = new Set<string>();
    let unwatch: () => void = () => {};
    const leaving = mapStream(source, (event) => {
      const result = this.#leaving(operation, event);
      for (const code of codesOf(result)) codes.add(code);
      results++;
      return result;
    });
    const stream = endable(
      lastOnError(leaving, (error) => this.#leaving(operation, fault(error))),
      () => {
        unwatch();
        operation.signal?.removeEventListener("abort", close);
        ended([...codes], results);
      },
    );
    const close = () => void stream.return();
    operation.signal?.addEventListener("abort", close, { once: true });
    if (operation.signal?.aborted) close();
    if (operation.actor)
      unwatch = this.#keys.watch(operation.actor, () =>
        stream.end({ errors: [refusalError(new Refused(GATEWAY.key_ended))] }),
      );
    return stream;
  }

  #start(operation: Operation): (codes: string[], results: number) => void {
    const startedAtMs = this.#clock.monotonicMs();
    const hooks = this.#plugins.flatMap((plugin) => plugin.started?.(operation) ?? []);
    return (codes, results) => {
      const outcome: Outcome = { durationMs: this.#clock.monotonicMs() - startedAtMs, codes, results };
      for (const hook of hooks) hook(outcome);
    };
  }

  #leaving(operation: Operation, result: Result): Result {
    let leaving = result;
    for (const plugin of this.#plugins) leaving = plugin.result?.(operation, leaving) ?? leaving;
    return leaving;
  }

  async #attempt<T>(run: () => Promise<T>): Promise<T | Result> {
    try {
      return await run();
    } catch (error) {
      return fault(error);
    }
  }
}

function asked(operation: Operation): GraphRequest {
  const { document, definition, variables } = operation;
  return { document, operationName: definition.name?.value, variables, caller: operation };
}

/** What a thrown error looks like as a result, before masking. */
function fault(error: unknown): Result {
  if (error instanceof GraphQLError) return { errors: [error] };
  const cause = error instanceof Error ? error : new Error(String(error));
  return { data: null, errors: [new GraphQLError(cause.message, { originalError: cause })] };
}

function codesOf(result: Result): string[] {
  return (result.errors ?? []).map((error) => String(error.extensions.code));
}
