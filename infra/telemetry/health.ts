/** Whether one part works. It throws, or answers with a reason, when it does not; null is healthy. */
export type Check = (signal: AbortSignal) => Promise<string | null>;

/** What readiness needs, by name: `database`, `queue`, `objects`, `supplier`. */
export type Checks = Readonly<Record<string, Check>>;

export interface CheckState {
  readonly state: "ok" | "failing";
  /** Why it fails; `ok` otherwise. Names no host, address or credential. */
  readonly message: string;
}

export interface Readiness {
  readonly status: "ready" | "not_ready";
  readonly checks: Readonly<Record<string, CheckState>>;
}

/** An HTTP answer without the HTTP: faces set it on theirs. */
export interface HealthAnswer<T> {
  readonly status: 200 | 503;
  readonly body: T;
}

const CHECK_TIMEOUT_MS = 2_000;

/** `/healthz`: the process answers at all. Depends on nothing, so a broken database does not get it killed. */
export function liveness(): HealthAnswer<{ status: "ok" }> {
  return { status: 200, body: { status: "ok" } };
}

/**
 * `/readyz`: every part works, asked at once, each within its time. `starting` and `stopping` name what holds the whole
 * process back although its parts may work.
 */
export async function readiness(
  checks: Checks,
  phase: "starting" | "serving" | "stopping",
  timeoutMs = CHECK_TIMEOUT_MS,
): Promise<HealthAnswer<Readiness>> {
  const states = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await stateOf(check, timeoutMs)] as const),
  );
  if (phase !== "serving") states.unshift(["process", { state: "failing", message: `the process is ${phase}` }]);
  const ready = states.every(([, { state }]) => state === "ok");
  return {
    status: ready ? 200 : 503,
    body: { status: ready ? "ready" : "not_ready", checks: Object.fromEntries(states) },
  };
}

async function stateOf(check: Check, timeoutMs: number): Promise<CheckState> {
  const late = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<string>((resolve) => {
    late.addEventListener("abort", () => resolve(`no answer within ${timeoutMs} ms`), { once: true });
  });
  try {
    const reason = await Promise.race([check(late), timedOut]);
    return reason === null ? { state: "ok", message: "ok" } : { state: "failing", message: reason };
  } catch (error) {
    if (late.aborted) return { state: "failing", message: await timedOut };
    return { state: "failing", message: faultWord(error) };
  }
}

/** An error's code says enough for whoever looks from outside; its text may hold addresses. The log has the rest. */
function faultWord(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? `cannot be reached (${code})` : "cannot be reached";
}
