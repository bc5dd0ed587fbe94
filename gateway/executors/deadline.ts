import { Refused } from "../../infra/kernel/refusal.ts";
import { GATEWAY } from "../refusals.ts";
import type { SubgraphAnswer, SubgraphExecutor, SubgraphRequest } from "../request.ts";
import { isStream } from "../stream.ts";

/**
 * Runs one request to a subgraph for at most `timeoutMs`; a stream only until it is open.
 * Rejects with `subgraph_timeout` after that, and tells the executor by the request's signal.
 */
export function withDeadline(
  executor: SubgraphExecutor,
  request: SubgraphRequest,
  timeoutMs: number,
): SubgraphAnswer | Promise<SubgraphAnswer> {
  const abort = new AbortController();
  const forward = () => abort.abort();
  request.signal?.addEventListener("abort", forward, { once: true });
  const release = () => request.signal?.removeEventListener("abort", forward);
  let answer: SubgraphAnswer | Promise<SubgraphAnswer>;
  try {
    answer = executor.execute({ ...request, signal: abort.signal });
  } catch (error) {
    release();
    throw error;
  }
  if (!(answer instanceof Promise)) {
    release();
    return answer;
  }
  return new Promise<SubgraphAnswer>((resolve, reject) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      release();
      abort.abort();
      reject(
        new Refused(GATEWAY.subgraph_timeout, {
          message: `The subgraph ${executor.name} did not answer within ${Math.ceil(timeoutMs)} ms.`,
        }),
      );
    }, timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      release();
    };
    answer.then(
      (value) => {
        settle();
        if (late) closeUnread(value);
        else resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}

/** A stream that opened after its reader had given up. */
function closeUnread(value: SubgraphAnswer): void {
  if (!isStream(value)) return;
  value[Symbol.asyncIterator]()
    .return?.()
    ?.catch(() => {}); // nobody is left who could be told
}
