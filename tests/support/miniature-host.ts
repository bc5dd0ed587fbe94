import { createHash, randomBytes } from "node:crypto";
import type { Database } from "../../infra/db/database.ts";
import type { FakeClock } from "../../infra/kernel/clock.ts";
import type { ExitRecord, RunnerRecord } from "../../infra/runner/protocol.ts";
import type { LifecycleDeps } from "../../subgraphs/compute/lifecycle/lifecycle-deps.ts";
import { applyRecords } from "../../subgraphs/compute/lifecycle/record.commands.ts";
import { openSession } from "../../subgraphs/compute/lifecycle/session.commands.ts";
import type { Session } from "../../subgraphs/compute/lifecycle/session.ts";
import { computeSettings } from "./compute-fixtures.ts";

const isolation = { level: "bubblewrap", ownUid: true, seccomp: true, limits: "cgroup-v1", detail: "" } as const;

/** What the commands of a running generation use, with a clock that only the test moves. */
export type FakeLifecycleDeps = LifecycleDeps & { readonly clock: FakeClock };

/** What the commands of a running generation use, on a test's database and clock. */
export function lifecycleDeps(db: Database, clock: FakeClock): FakeLifecycleDeps {
  return { db, clock, settings: computeSettings, secrets: { reveal: async () => [] }, random: (n) => randomBytes(n) };
}

/** A host in miniature: numbers its records and knows the digest of its log. */
export class MiniatureHost {
  seq = 0;
  logBytes = 0;
  readonly session: Session;
  readonly #deps: LifecycleDeps;
  readonly #hash = createHash("sha256");

  constructor(deps: LifecycleDeps, session: Session) {
    this.#deps = deps;
    this.session = session;
  }

  /** Exchanges an order's token; throws when it is refused. */
  static async open(deps: LifecycleDeps, order: { orderId: string; token: string }): Promise<MiniatureHost> {
    const answer = await openSession(deps, { ...order, protocol: 1 });
    if ("refused" in answer) throw new Error(answer.message, { cause: answer });
    return new MiniatureHost(deps, answer.session);
  }

  record(body: Record<string, unknown>): RunnerRecord {
    return { seq: ++this.seq, at: this.#deps.clock.now().toISOString(), ...body } as RunnerRecord;
  }

  log(bytes: Buffer): RunnerRecord {
    const record = this.record({ type: "log", offset: this.logBytes, data: bytes.toString("base64") });
    this.logBytes += bytes.length;
    this.#hash.update(bytes);
    return record;
  }

  phase(phase: "staging" | "running"): RunnerRecord {
    return this.record({ type: "phase", phase, isolation, note: null });
  }

  running(): RunnerRecord {
    return this.phase("running");
  }

  exit(over: Partial<ExitRecord> = {}): RunnerRecord {
    const clean = { code: 0, signal: null, oom: false, killedBy: null, startFailure: null, ranMs: 2_000 };
    return this.record({ type: "exit", ...clean, ...over });
  }

  end(over: { logBytes?: number; droppedUnits?: number } = {}): RunnerRecord {
    const logSha256 = this.#hash.copy().digest("hex");
    return this.record({ type: "end", logBytes: this.logBytes, logSha256, droppedUnits: 0, ...over });
  }

  apply(...records: RunnerRecord[]) {
    return applyRecords(this.#deps, this.session, records);
  }
}
