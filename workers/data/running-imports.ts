import type { ImportClaim } from "../../subgraphs/data/asset/import/import-claim.ts";
import type { ImportStarter } from "../../subgraphs/data/asset/import/import-starter.ts";
import { fetchImport, type ImportDeps } from "./fetch-import.ts";

/** Imports that came with a credential: they run in the process that was given it, and nowhere else. */
export class RunningImports implements ImportStarter {
  readonly #deps: ImportDeps;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: ImportDeps) {
    this.#deps = deps;
  }

  start(claim: ImportClaim, token: string): void {
    const running = fetchImport(this.#deps, claim, { token, stopping: this.#stopping.signal })
      .catch((err: unknown) => {
        // Its lease runs out, and then it has failed.
        this.#deps.logger.error({ err, assetId: claim.assetId }, "an import was given up");
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Cuts off what is under way; resolves when each has been written down as failed. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error("the process is going down"));
    await Promise.all(this.#running);
  }
}
