import type { ExecutionResult } from "graphql";
import { withDeadline } from "./executors/deadline.ts";
import { StreamLost } from "./executors/websocket.ts";
import type { GatewayPlugin } from "./plugins/plugin.ts";
import type { Operation, SubgraphAnswer, SubgraphExecutor, SubgraphRequest } from "./request.ts";
import type { ExecuteOnSubgraph } from "./router.ts";
import { isStream, lastOnError, mapStream } from "./stream.ts";
import { failureResult, tidyResult } from "./subgraph-failure.ts";

export interface SubgraphOptions {
  executors: readonly SubgraphExecutor[];
  plugins: readonly GatewayPlugin[];
  timeoutMs: number;
}

/** Sends each step of a plan to its subgraph: bounded in time, and a failure is a result, never a rejection. */
export function executeOn({ executors, plugins, timeoutMs }: SubgraphOptions): ExecuteOnSubgraph {
  const byName = new Map(executors.map((executor) => [executor.name, executor]));
  const watching = plugins.filter((plugin) => plugin.fetching);
  return (subgraph, request, caller) => {
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
      const answer = withDeadline(executor, request as SubgraphRequest, timeoutMs);
      return answer instanceof Promise ? answer.then(done).catch(failed) : done(answer);
    } catch (error) {
      return failed(error);
    }
  };
}
