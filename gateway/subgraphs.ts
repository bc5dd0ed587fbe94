import type { ExecutionResult } from "graphql";
import type { Clock } from "../infra/kernel/clock.ts";
import { Refused } from "../infra/kernel/refusal.ts";
import { withDeadline } from "./executors/deadline.ts";
import { StreamLost } from "./executors/websocket.ts";
import type { GatewayPlugin } from "./plugins/plugin.ts";
import { GATEWAY } from "./refusals.ts";
import type { Operation, SubgraphAnswer, SubgraphExecutor, SubgraphRequest } from "./request.ts";
import type { ExecuteOnSubgraph } from "./router.ts";
import { isStream, lastOnError, mapStream } from "./stream.ts";
import { failureResult, tidyResult } from "./subgraph-failure.ts";

export interface SubgraphOptions {
  executors: readonly SubgraphExecutor[];
  plugins: readonly GatewayPlugin[];
  /** How long one step may take; what is left to its plan's run may be less. */
  timeoutMs: number;
  clock: Clock;
}

/** Sends each step of a plan to its subgraph: bounded in time, and a failure is a result, never a rejection. */
export function executeOn({ executors, plugins, timeoutMs, clock }: SubgraphOptions): ExecuteOnSubgraph {
  const byName = new Map(executors.map((executor) => [executor.name, executor]));
  const watching = plugins.filter((plugin) => plugin.fetching);
  return (subgraph, request, { caller, answerByMs }) => {
    const ends = watching.map((plugin) => plugin.fetching!(caller as Operation, subgraph));
    const done = (answer: SubgraphAnswer): SubgraphAnswer => {
      for (const end of ends) end();
      const tidy = (result: ExecutionResult) => tidyResult(request, result);
      if (!isStream(answer)) return tidy(answer as ExecutionResult);
      const stream = mapStream((answer as AsyncIterable<ExecutionResult>)[Symbol.asyncIterator](), tidy);
      return lastOnError(stream, (error) => {
        if (!(error instanceof StreamLost)) throw error;
        return failureResult(subgraph, request, error);
      });
    };
    const failed = (error: unknown): ExecutionResult => {
      for (const end of ends) end(error);
      return failureResult(subgraph, request, error);
    };
    try {
      const executor = byName.get(subgraph);
      if (!executor) throw new Error(`no executor was given for the subgraph ${subgraph}`);
      const restMs = answerByMs - clock.monotonicMs();
      if (restMs <= 0) throw tooLate(subgraph);
      const answer = withDeadline(executor, request as SubgraphRequest, Math.min(timeoutMs, restMs));
      return answer instanceof Promise ? answer.then(done).catch(failed) : done(answer);
    } catch (error) {
      return failed(error);
    }
  };
}

function tooLate(subgraph: string): Refused {
  return new Refused(GATEWAY.subgraph_timeout, {
    message: `The operation's time was over before the subgraph ${subgraph} was asked.`,
  });
}
