import type { Clock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { ConnectionFailure } from "./connection-failure.ts";
import type { Credential, DatabaseLogin } from "./credential-shape.ts";
import { farewell } from "./farewell.ts";
import { ProtocolViolation } from "./message-guard.ts";
import { logIn } from "./open-database.ts";
import { askViewer, type WandbOrigin } from "./wandb-viewer.ts";

export interface VerifyDeps {
  /** Private hosts that the operator opened. */
  exceptions: PrivateExceptions;
  clock: Clock;
  wandb: WandbOrigin;
}

/** Shows within five seconds that a credential works, or throws `ConnectionFailure`. Nothing outside is changed. */
export function verifyCredential(deps: VerifyDeps, credential: Credential): Promise<void> {
  if (credential.kind === "wandb") return askViewer(deps, credential.apiKey, LIMITS.connectionVerifyMs);
  return selectOne(deps, credential.login);
}

async function selectOne({ exceptions, clock }: VerifyDeps, login: DatabaseLogin): Promise<void> {
  const startedMs = clock.monotonicMs();
  const client = await logIn(
    login,
    { exceptions, clock },
    {
      timeoutMs: LIMITS.connectionVerifyMs,
      applicationName: "nodus verify",
    },
  );
  const finished = new AbortController();
  const restMs = LIMITS.connectionVerifyMs - (clock.monotonicMs() - startedMs);
  const late = clock.sleep(restMs, finished.signal).then(() => "late" as const);
  const asked = (async () => {
    for (const statement of ["begin transaction read only", "select 1", "rollback"]) await client.query(statement);
    return "answered" as const;
  })();
  try {
    const outcome = await Promise.race([asked, late]);
    if (outcome === "late") throw new ConnectionFailure("timeout");
  } catch (error) {
    if (error instanceof ConnectionFailure) throw error;
    const refused =
      error instanceof ProtocolViolation || /^[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code));
    throw new ConnectionFailure(refused ? "database_refused" : "unreachable");
  } finally {
    finished.abort();
    asked.catch(() => {}); // after the time limit its answer is of no use
    void farewell(clock, client); // the answer is known; an end in the middle of a statement cuts the line
  }
}
