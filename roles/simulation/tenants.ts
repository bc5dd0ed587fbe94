import type { Actor } from "../../infra/kernel/actor.ts";
import { grantCredit, openAccount, setLimits } from "../../subgraphs/compute/account/account.commands.ts";
import { cancelWorkload } from "../../subgraphs/compute/workload/cancel-workload.ts";
import { createWorkload } from "../../subgraphs/compute/workload/create-workload.ts";
import type { WorkloadPayload } from "../../subgraphs/compute/workload/workload.payload.ts";
import { type AskingOptions, ask, memberOf } from "./asking.ts";
import type { Chance } from "./chance.ts";
import { commandOf, drawPlay } from "./guest-play.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

const USD = 1_000_000n;

/** The customers of a simulated world, and the operator who credits them. They repeat what was not answered. */
export class Tenants {
  readonly #options: AskingOptions;
  readonly #actors: Actor[] = [];
  readonly #submitted: { actor: Actor; id: string }[] = [];
  #requests = 0;

  constructor(options: AskingOptions) {
    this.#options = options;
  }

  /** Workloads that were accepted. */
  get accepted(): number {
    return this.#submitted.length;
  }

  /** Opens the teams' accounts, rich and poor ones. */
  async open(teams: number): Promise<void> {
    for (let n = 1; n <= teams; n++) {
      const teamId = `team_${n}`;
      this.#actors.push(memberOf(teamId));
      const creditMicros = BigInt(this.#options.chance.pick([0, 20_000, 500_000, 50_000_000]));
      const account = { teamId, creditMicros, paymentMethod: true, concurrentRunsLimit: 20 };
      await this.#ask(`open ${teamId}`, ({ db, clock }) =>
        db.command(async (tx) => String(await openAccount(tx, account, clock.now()))),
      );
    }
  }

  /** Somebody does something, as often as their weights say. */
  act(): Promise<void> {
    const { chance } = this.#options;
    const act = chance.weighted<() => Promise<void>>([
      [19, () => this.submit()],
      [1, () => this.#changeMind()],
      [2, () => this.#giveUp()],
      [4, () => this.#cancelOne()],
      [2, () => this.#credit(chance.pick(this.#actors), BigInt(chance.between(1, 5_000_000)))],
      [1, () => this.#limit()],
    ]);
    return act();
  }

  async submit(): Promise<void> {
    const { chance } = this.#options;
    const actor = chance.pick(this.#actors);
    const { count } = this.#options;
    const number = ++this.#requests;
    const payload = drawPayload(chance, this.#now());
    const send = async ({ workloads, clock }: SimulatedProcess) => {
      const request = { payload, idempotencyKey: `request-${number}` };
      const { workload, replayed } = await createWorkload(workloads, actor, request, clock.now());
      count("customers", replayed ? "submitted again" : "submitted");
      if (!this.#submitted.some(({ id }) => id === workload.id)) this.#submitted.push({ actor, id: workload.id });
      return `${workload.id}${replayed ? ", replayed" : ""}`;
    };
    await this.#ask(`submit ${number}`, send);
    if (chance.happens(0.05)) await this.#ask(`submit ${number}, by mistake again`, send);
  }

  /** Submits, and asks for the end soon after. */
  async #changeMind(): Promise<void> {
    const { clock, chance } = this.#options;
    const before = this.#submitted.length;
    await this.submit();
    await clock.sleep(chance.pick([0, chance.between(0, 100), chance.between(0, 5_000)]));
    const mine = this.#submitted[before];
    if (mine) await this.#cancel(mine.actor, mine.id);
  }

  /** Looks at what is to be run once more, and asks for the end of one of those. */
  async #giveUp(): Promise<void> {
    const { chance } = this.#options;
    let unlucky: { id: string }[] = [];
    await this.#ask("what has lost its machine?", async ({ db }) => {
      unlucky = await db.sql<{ id: string }>("select id from compute.workload where status = 'recovering' order by id");
      return String(unlucky.length);
    });
    if (unlucky.length === 0) return;
    const { id } = chance.pick(unlucky);
    const mine = this.#submitted.find((one) => one.id === id);
    if (mine) await this.#cancel(mine.actor, id);
  }

  /** Everybody gets money and may spend it. */
  async makeRich(): Promise<void> {
    for (const actor of this.#actors) {
      await this.#credit(actor, 100n * USD);
      await this.#setLimits(actor, { paymentMethod: true, monthlyCapMicros: null });
    }
  }

  /** Everybody asks for the end of everything. */
  async cancelAll(): Promise<void> {
    for (const { actor, id } of this.#submitted) await this.#cancel(actor, id);
  }

  async #cancelOne(): Promise<void> {
    const { chance } = this.#options;
    if (this.#submitted.length === 0) return;
    const { actor, id } = this.#submitted.at(-chance.between(1, Math.min(12, this.#submitted.length)))!;
    await this.#cancel(actor, id);
  }

  #cancel(actor: Actor, id: string): Promise<void> {
    return this.#ask(
      `cancel ${id}`,
      async ({ db, clock }) => (await cancelWorkload(db, actor, id, clock.now())).status,
    );
  }

  #credit({ tenantId: teamId }: Actor, micros: bigint): Promise<void> {
    return this.#ask(`credit ${teamId} ${micros}`, async ({ db, clock }) => {
      const account = await grantCredit(db, { teamId, micros, note: "simulated" }, clock.now());
      this.#options.count("customers", "credits given");
      return String(account.balanceMicros);
    });
  }

  async #limit(): Promise<void> {
    const { chance } = this.#options;
    const monthlyCapMicros = chance.happens(0.5) ? null : BigInt(chance.between(0, 2_000_000));
    await this.#setLimits(chance.pick(this.#actors), { paymentMethod: chance.happens(0.7), monthlyCapMicros });
  }

  #setLimits(actor: Actor, limits: { paymentMethod: boolean; monthlyCapMicros: bigint | null }): Promise<void> {
    const { paymentMethod, monthlyCapMicros } = limits;
    return this.#ask(`limit ${actor.tenantId} ${paymentMethod} ${monthlyCapMicros}`, async ({ db, clock }) => {
      await setLimits(db, actor.tenantId, limits, clock.now());
      this.#options.count("customers", "limits changed");
      return "set";
    });
  }

  #now(): Date {
    return this.#options.clock.now();
  }

  #ask(what: string, request: (process: SimulatedProcess) => Promise<string>): Promise<void> {
    return ask(this.#options, what, request);
  }
}

function drawPayload(chance: Chance, now: Date): Partial<WorkloadPayload> {
  const gpu = chance.happens(0.3);
  const completeBy = new Date(now.getTime() + chance.between(60_000, 1_800_000));
  const source = () => ({ image: "python:3.11-slim", command: commandOf(drawPlay(chance)) });
  // More than one is refused so far.
  const stages = chance.weighted([
    [40, 1],
    [1, 2],
    [1, 3],
  ]);
  return {
    ...(stages === 1
      ? { source: source() }
      : { stages: Array.from({ length: stages }, (_, n) => ({ id: `stage-${n + 1}`, source: source() })) }),
    requirements: gpu ? { gpu: chance.pick(["H100", "A100"]), gpu_count: 1 } : {},
    outcome: {
      ...(chance.happens(0.3) ? { max_cost_usd: chance.between(1, 60_000) / 1_000_000 } : {}),
      ...(chance.happens(0.25) ? { complete_by: completeBy.toISOString() } : {}),
    },
    continuity: { resume_on_interruption: chance.happens(0.8) },
  };
}
