import type { Actor } from "../../infra/kernel/actor.ts";
import { appendAccountEvent } from "../../subgraphs/data/account-event/append-account-event.ts";
import { redeliver } from "../../subgraphs/data/delivery/delivery.commands.ts";
import { deleteWebhook, putWebhook } from "../../subgraphs/data/webhook/webhook.commands.ts";
import { type AskingOptions, ask, memberOf } from "./asking.ts";
import type { Receivers } from "./receivers.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

export interface WebhookOwnersOptions extends AskingOptions {
  receivers: Receivers;
}

/** The team whose webhook is there from the beginning to the end. */
export const STEADY_TEAM = "team_1";
/** The others that have one now and then. */
const FICKLE_TEAMS = ["team_2", "team_3"];
const SECRET = "a secret of the receiver";
/** What an owner waits after all has become quiet before it asks for what was not sent. */
const PATIENCE_MS = 60_000;
const HAPPENINGS = ["asset.importing", "asset.ready", "asset.deleted", "export.failed"] as const;

/** Those who have webhooks: they write and delete them, and ask for deliveries once more. */
export class WebhookOwners {
  readonly #options: WebhookOwnersOptions;
  readonly #urls = new Map<string, string[]>();
  /** A team waits for an answer before it asks for something else. */
  readonly #turns = new Map<string, Promise<void>>();
  #count = 0;

  constructor(options: WebhookOwnersOptions) {
    this.#options = options;
  }

  /** The steady team's webhook is there before anything happens. */
  open(): Promise<void> {
    return this.#put(STEADY_TEAM);
  }

  /** Somebody does something, as often as their weights say. */
  act(): Promise<void> {
    const { chance } = this.#options;
    const fickle = () => chance.pick(FICKLE_TEAMS);
    const some = () => chance.pick([STEADY_TEAM, ...FICKLE_TEAMS]);
    const act = chance.weighted<() => Promise<void>>([
      [3, () => this.#put(fickle())],
      [2, () => this.#delete(fickle())],
      [5, () => this.#happen(some())],
      [3, () => this.#redeliverOne(some())],
    ]);
    return act();
  }

  /** All is well by now: what still waits for a later try is asked for. */
  async askForTheRest(): Promise<void> {
    await this.#options.clock.sleep(PATIENCE_MS);
    for (const team of [STEADY_TEAM, ...FICKLE_TEAMS])
      for (const id of await this.#deliveries(team, ["pending"])) await this.#redeliver(team, id);
  }

  #put(team: string): Promise<void> {
    const url = `https://${team.replace("_", "-")}.example.com/hook-${++this.#count}`;
    const { receivers } = this.#options;
    return this.#inTurn(
      team,
      `webhook of ${team} ${this.#count}`,
      async (process, actor) => {
        receivers.open(url, SECRET, team !== STEADY_TEAM);
        this.#urls.set(team, [...(this.#urls.get(team) ?? []), url]);
        await putWebhook(process.webhooks, actor, { url, secret: SECRET }, process.clock.now());
        return "written";
      },
      () => this.#closeBut(team, url),
    );
  }

  #delete(team: string): Promise<void> {
    return this.#inTurn(
      team,
      `delete the webhook of ${team}`,
      async ({ db, clock }, actor) => {
        await deleteWebhook(db, actor, clock.now());
        this.#options.count("customers", "webhook deleted");
        return "deleted";
      },
      () => this.#closeBut(team, null),
    );
  }

  #closeBut(team: string, open: string | null): void {
    for (const url of this.#urls.get(team) ?? []) if (url !== open) this.#options.receivers.close(url);
  }

  /** What other parts of data would record. */
  #happen(team: string): Promise<void> {
    const type = this.#options.chance.pick(HAPPENINGS);
    return ask(this.#options, `${type} of ${team}`, async ({ db, clock }) => {
      const now = clock.now();
      await db.command((tx) => appendAccountEvent(tx, { tenantId: team, type, payload: { asset_id: "asset_1" }, now }));
      return "recorded";
    });
  }

  async #redeliverOne(team: string): Promise<void> {
    const among = await this.#deliveries(team, ["pending", "delivered", "failed"]);
    if (among.length > 0) await this.#redeliver(team, this.#options.chance.pick(among));
  }

  #redeliver(team: string, id: string): Promise<void> {
    return ask(this.#options, `redeliver ${id}`, async ({ db, clock }) => {
      const { state } = await redeliver(db, memberOf(team), id, clock.now());
      this.#options.count("customers", "asked for a delivery again");
      return state;
    });
  }

  async #deliveries(team: string, states: readonly string[]): Promise<string[]> {
    let found: { id: string }[] = [];
    await ask(this.#options, `what is sent to ${team}?`, async ({ db }) => {
      found = await db.sql<{ id: string }>(
        "select id from data.webhook_delivery where tenant_id = $1 and state = any($2) order by id",
        [team, states],
      );
      return String(found.length);
    });
    return found.map(({ id }) => id);
  }

  #inTurn(
    team: string,
    what: string,
    request: (process: SimulatedProcess, actor: Actor) => Promise<string>,
    answered: () => void,
  ): Promise<void> {
    const turn = (this.#turns.get(team) ?? Promise.resolve()).then(async () => {
      await ask(this.#options, what, (process) => request(process, memberOf(team)));
      answered();
    });
    this.#turns.set(team, turn);
    return turn;
  }
}
