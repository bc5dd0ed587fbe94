import type { ImportClaim } from "./import-claim.ts";

/** Fetches sources whose credential came with the request, in this process. */
export interface ImportStarter {
  /** Returns at once; the asset's row says how it went. The credential is kept in memory until then. */
  start(claim: ImportClaim, token: string): void;
}
