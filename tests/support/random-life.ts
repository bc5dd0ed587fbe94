import type { OfferFact } from "../../infra/drivers/driver.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { StoredObject } from "../../infra/objects/object-store.ts";
import type { ExitRecord, RunnerRecord } from "../../infra/runner/protocol.ts";
import { openAccount } from "../../subgraphs/compute/account/account.commands.ts";
import { stopAtDeadline } from "../../subgraphs/compute/lifecycle/deadline.commands.ts";
import { loseGeneration } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { beat, resumeSession } from "../../subgraphs/compute/lifecycle/session.commands.ts";
import { NOTHING_POSTED, settle, settleWorkload } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import { failBoot, settleLaunched } from "../../subgraphs/compute/placement/boot.commands.ts";
import { claimBatch } from "../../subgraphs/compute/placement/claim.commands.ts";
import { orderToken } from "../../subgraphs/compute/placement/order-token.ts";
import type { PlacementDeps } from "../../subgraphs/compute/placement/placement-deps.ts";
import { confirmGone } from "../../subgraphs/compute/placement/release.commands.ts";
import { cancelWorkload } from "../../subgraphs/compute/workload/cancel-workload.ts";
import { createWorkload } from "../../subgraphs/compute/workload/create-workload.ts";
import { loseExpiredLeases } from "../../workers/reconcile/expired-leases.ts";
import { MEMBER } from "./actors.ts";
import { RUNNER_KEY, TENANT } from "./compute-fixtures.ts";
import { type ComputeGraph } from "./compute-graph.ts";
import { lifecycleDeps, MiniatureHost } from "./miniature-host.ts";
import { seeded } from "./seeded.ts";
import { storedResult } from "./stored-result.ts";

/** Far beyond every next try. */
const WHENEVER = new Date("9999-01-01T00:00:00Z");

/** Two machines that together take five orders, one of them much dearer. */
const OFFERS: Partial<OfferFact>[] = [
  {
    sku: "cheap",
    capacity: { key: "a", cpuMillis: 300, memoryMb: 4_096, gpus: 0, slots: 3 },
    rateMicrosPerHour: 100_000n,
  },
  {
    sku: "dear",
    capacity: { key: "b", cpuMillis: 200, memoryMb: 4_096, gpus: 0, slots: 2 },
    rateMicrosPerHour: 90_000_000n,
  },
];

const EXITS: Partial<ExitRecord>[] = [
  // As often as all that goes wrong together.
  ...Array.from({ length: 8 }, () => ({ code: 0 })),
  { code: 3 },
  { code: null, signal: "SIGKILL", killedBy: "cancel" },
  { code: null, signal: "SIGKILL", killedBy: "deadline" },
  { code: null, signal: "SIGKILL", oom: true },
  { code: null, killedBy: "host_shutdown" },
  { code: null },
  { code: null, startFailure: { kind: "not_found", message: "no such program" } },
  { code: 0, ranMs: 10 ** 9 },
];

/** Everything that may happen to workloads, by the real commands, in an order that a seed decides. */
export class RandomLife {
  readonly #graph: ComputeGraph;
  readonly #pick: (below: number) => number;
  readonly #deps: PlacementDeps;
  readonly #hosts: MiniatureHost[] = [];
  /** Bytes that guests leave. */
  readonly #output: StoredObject;
  #submitted = 0;

  constructor(graph: ComputeGraph, seed: number, output: StoredObject) {
    this.#graph = graph;
    this.#output = output;
    this.#pick = seeded(seed);
    const { db, clock, settings, deps } = graph;
    const random = () => this.#pick(1_000) / 1_000;
    this.#deps = { db, clock, settings, market: deps.market, runnerKey: RUNNER_KEY, random };
  }

  static async begin(graph: ComputeGraph, seed: number): Promise<RandomLife> {
    const account = { teamId: TENANT, creditMicros: 8_000_000n, paymentMethod: true, concurrentRunsLimit: 12 };
    await graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
    await graph.offer(...OFFERS);
    return new RandomLife(graph, seed, await storedResult(graph, "x"));
  }

  /** Picks what happens next; what it does is decided now, and done when it is called. */
  next(): { name: string; run: () => Promise<unknown> } {
    const acts: [weight: number, name: string, act: () => Promise<unknown>][] = [
      [6, "submit", () => this.#submit()],
      [8, "claim", () => this.#claim()],
      [4, "launched", () => this.#launched()],
      [1, "refuse", () => this.#failBoot("no_capacity", true)],
      [1, "boot timeout", () => this.#failBoot("boot_timeout", false)],
      [10, "open", () => this.#open()],
      [16, "records", () => this.#records()],
      [4, "end", () => this.#end()],
      [5, "beat", () => this.#beat()],
      [1, "cancel", () => this.#cancel()],
      [1, "deadline", () => this.#deadline()],
      [1, "lose", () => this.#lose()],
      [1, "silence", () => this.#pass(91_000).then(() => loseExpiredLeases(this.#graph.db, this.#now))],
      [4, "time", () => this.#pass(1 + this.#pick(20_000))],
      [6, "release", () => this.#release()],
      [6, "settle", () => this.#settle()],
      [2, "close", () => this.#close()],
    ];
    const drawn = acts.flatMap(([weight, name, act]) => Array.from({ length: weight }, () => ({ name, act })));
    const { name, act } = drawn[this.#pick(drawn.length)]!;
    return { name, run: () => act().catch(refusalIsFine) };
  }

  /** Everybody is asked to end, every order is ended, and all that is owed is paid. */
  async end(): Promise<void> {
    const { db } = this.#graph;
    for (const id of await this.#ids("select id from compute.workload")) await this.#cancel(id);
    await this.#pass(200_000);
    await loseExpiredLeases(db, this.#now);
    for (const id of await this.#ids("select id from compute.attempt")) await this.#release(id);
    for (const id of await this.#ids("select id from compute.placement")) await this.#settle(id);
    for (const id of await this.#ids("select id from compute.workload")) await this.#close(id);
  }

  get #now(): Date {
    return this.#graph.clock.now();
  }

  async #pass(ms: number): Promise<void> {
    await this.#graph.clock.advance(ms);
    await this.#graph.db.sql("update compute.supplier set seen_at = $1", [this.#now]);
  }

  #submit(): Promise<unknown> {
    const again = this.#submitted > 0 && this.#pick(6) === 0;
    const key = `key-${again ? this.#pick(this.#submitted) : this.#submitted++}`;
    const n = Number(key.slice(4));
    const outcome = {
      ...(n % 3 === 0 ? { max_cost_usd: 0.004 } : {}),
      ...(n % 4 === 0 ? { complete_by: "2026-03-01T00:20:00Z" } : {}),
    };
    const continuity = { resume_on_interruption: n % 5 !== 0 };
    const payload = { source: { command: ["true"] }, outcome, continuity };
    return createWorkload(this.#graph.deps, MEMBER, { payload, idempotencyKey: key }, this.#now);
  }

  #claim(): Promise<unknown> {
    return claimBatch(this.#deps, { limit: 1 + this.#pick(4), afterTenant: "", dueBy: WHENEVER, untriedSince: null });
  }

  async #launched(): Promise<void> {
    const [order] = await this.#some<{ id: string; fence: number }>(
      "select id, fence from compute.attempt where state = 'launching'",
    );
    const fence = (order?.fence ?? 0) - (this.#pick(5) === 0 ? 1 : 0);
    if (order) await settleLaunched(this.#graph.db, [{ orderId: order.id, fence }], this.#now);
  }

  async #failBoot(code: "no_capacity" | "boot_timeout", gone: boolean): Promise<void> {
    const [order] = await this.#some<{ id: string }>("select id from compute.attempt where state <> 'gone'");
    const failure = { code, message: "as it happens", gone };
    const { db, settings } = this.#graph;
    if (order) await db.command((tx) => failBoot(tx, { orderId: order.id, ...failure }, settings, this.#now));
  }

  async #open(): Promise<void> {
    const [order] = await this.#some<{ id: string }>(
      "select id from compute.attempt where state in ('launching', 'booting')",
    );
    if (!order) return;
    const deps = lifecycleDeps(this.#graph.db, this.#graph.clock);
    const opened = await MiniatureHost.open(deps, { orderId: order.id, token: orderToken(RUNNER_KEY, order.id) }).catch(
      unlessToComeAgain,
    );
    if (opened) this.#hosts.push(opened);
  }

  #host(): MiniatureHost | undefined {
    return this.#hosts[this.#hosts.length - 1 - this.#pick(Math.min(8, this.#hosts.length || 1))];
  }

  async #records(): Promise<void> {
    const host = this.#host();
    if (!host) return;
    const makers: (() => RunnerRecord)[] = [
      () => host.phase("staging"),
      () => host.running(),
      () => host.log(Buffer.alloc(1 + this.#pick(50), "x")),
      () => host.log(Buffer.from("again")),
      () => host.record({ type: "unit", id: `u${this.#pick(4)}`, ms: 1 }),
      () =>
        host.record({
          type: "output",
          name: `o${this.#pick(2)}`,
          ...this.#output,
          media: "text/plain",
          isTar: false,
        }),
      () => host.exit(EXITS[this.#pick(EXITS.length)]),
    ];
    const from = { seq: host.seq, logBytes: host.logBytes };
    const first = host.seq === 0 && this.#pick(3) > 0 ? [host.running()] : [];
    const batch = [...first, ...Array.from({ length: 1 + this.#pick(4) }, () => makers[this.#pick(makers.length)]!())];
    await host.apply(...batch);
    if (this.#pick(4) === 0) await host.apply(...batch); // its acknowledgement got lost
    if (this.#pick(12) === 0) Object.assign(host, from); // the host died before it had stored them
  }

  async #end(): Promise<void> {
    const host = this.#host();
    if (host) await host.apply(host.exit(EXITS[this.#pick(EXITS.length)]), host.end(), host.running());
  }

  async #beat(): Promise<void> {
    const host = this.#host();
    if (!host) return;
    const deps = lifecycleDeps(this.#graph.db, this.#graph.clock);
    await beat(deps, host.session);
    await resumeSession(deps, { orderId: host.session.orderId, session: "not this one" });
  }

  async #cancel(id?: string): Promise<void> {
    const [workload] = id ? [{ id }] : await this.#some<{ id: string }>("select id from compute.workload");
    if (workload) await cancelWorkload(this.#graph.db, MEMBER, workload.id, this.#now);
  }

  async #deadline(): Promise<void> {
    const [workload] = await this.#some<{ id: string }>(
      "select id from compute.workload where complete_by is not null",
    );
    if (workload) await this.#graph.db.command((tx) => stopAtDeadline(tx, workload.id, this.#now));
  }

  async #lose(): Promise<void> {
    const [placement] = await this.#some<{ id: string }>("select id from compute.placement");
    const lost = placement && { placementId: placement.id, trigger: "host_lost", now: this.#now };
    if (lost) await this.#graph.db.command((tx) => loseGeneration(tx, lost));
  }

  async #release(id?: string): Promise<void> {
    const [order] = id
      ? [{ id }]
      : await this.#some<{ id: string }>("select id from compute.attempt where state in ('failed', 'ended')");
    if (order) await this.#graph.db.command((tx) => confirmGone(tx, order.id, this.#now));
  }

  async #settle(id?: string): Promise<void> {
    const [placement] = id
      ? [{ id }]
      : await this.#some<{ id: string }>("select id from compute.placement where state <> 'closed'");
    if (placement) await this.#graph.db.command((tx) => settle(tx, placement.id, this.#now));
  }

  async #close(id?: string): Promise<void> {
    const [workload] = id ? [{ id }] : await this.#some<{ id: string }>("select id from compute.workload");
    if (workload) await this.#graph.db.command((tx) => settleWorkload(tx, workload.id, NOTHING_POSTED, this.#now));
  }

  async #some<R>(text: string): Promise<R[]> {
    const rows = await this.#graph.db.sql<R>(`${text} order by id desc limit 8`);
    return rows.length === 0 ? [] : [rows[this.#pick(rows.length)]!];
  }

  async #ids(text: string): Promise<string[]> {
    return (await this.#graph.db.sql<{ id: string }>(text)).map((row) => row.id);
  }
}

/** A refusal is an answer; a host's order that is not open any more, too. Whatever else is thrown is a fault. */
function refusalIsFine(error: Error): void {
  if (!(error instanceof Refused) && !/order is over|token was used up/.test(error.message)) throw error;
}

/** Of several exchanges at the same time the last one counts. */
function unlessToComeAgain(error: Error): null {
  if ((error.cause as { refused?: string } | undefined)?.refused === "retry") return null;
  throw error;
}
