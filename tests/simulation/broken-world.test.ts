import { afterAll, beforeAll, expect, test } from "vitest";
import { allEntities } from "../../roles/entities.ts";
import { SimulationFailure, simulate } from "../../roles/simulation/simulate.ts";
import { SimulationDatabase } from "../../roles/simulation/simulation-database.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let under: TestDatabase;
let database: SimulationDatabase;

beforeAll(async () => {
  under = await testDatabase(allEntities);
  database = await SimulationDatabase.open(under.url);
});
afterAll(async () => {
  await database?.close();
  await under?.close();
});

const HOURS = 0.5;
/** Lived through at most, until one fails. */
const SEEDS = 20;

interface Broken {
  readonly table: string;
  readonly when: "before insert" | "before update" | "after delete";
  readonly fault: string;
}

/**
 * Lives through worlds whose database does what a careless statement would do; returns what was not true of one.
 * @param signal of the test: a world that is still lived through when its time is over must not fail the next one
 */
async function failureWith(
  { table, when, fault }: Broken,
  { first, signal, listen }: { first: number; signal: AbortSignal; listen?: (line: string) => void },
): Promise<SimulationFailure> {
  await under.db.sql(`create function compute.fault() returns trigger language plpgsql as $$ begin ${fault} end $$`);
  try {
    await under.db.sql(`create trigger fault ${when} on ${table} for each row execute function compute.fault()`);
    for (let seed = first; seed < first + SEEDS; seed++) {
      const error = await simulate({ database, seed, durationMs: HOURS * 3_600_000, listen, signal }).catch((e) => e);
      signal.throwIfAborted();
      if (error instanceof SimulationFailure) return error;
    }
    throw new Error(`${SEEDS} worlds went well`);
  } finally {
    await under.db.sql("drop function compute.fault cascade");
  }
}

test("a world in which money appears from nowhere fails, and tells its seed, the command and what happened last", async ({
  signal,
}) => {
  const fault = `
    if new.held_micros > old.held_micros then new.balance_micros := new.balance_micros + 1; end if;
    return new;`;
  const lines: string[] = [];
  const listen = (line: string) => void lines.push(line);
  const { message } = await failureWith(
    { table: "compute.account", when: "before update", fault },
    { first: 5, signal, listen },
  );
  expect(message).toContain(`nodus sim --seed 5 --hours ${HOURS}`);
  expect(message).toContain("not true: credits are what the books say");
  expect(message.split("\n").at(-1)).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\t/);
  expect(lines.length).toBeGreaterThan(100);
}, 120_000);

test("a world fails in which leases are held to be over a minute before their hosts end what they run", async ({
  signal,
}) => {
  const fault = `
    if new.lease_expires_at > old.lease_expires_at then
      new.lease_expires_at := new.lease_expires_at - interval '60 seconds';
    end if;
    return new;`;
  const { message } = await failureWith(
    { table: "compute.placement", when: "before update", fault },
    { first: 7, signal },
  );
  expect(message).toContain("not true: a stage's command runs once at most");
}, 120_000);

test("a world fails in which records are acknowledged that were not written down", async ({ signal }) => {
  const fault = "new.applied_seq := least(new.applied_seq, old.applied_seq); return new;";
  const { message } = await failureWith(
    { table: "compute.placement", when: "before update", fault },
    { first: 5, signal },
  );
  expect(message).toContain("not true: what was acknowledged is written down");
}, 120_000);

test("a world fails in which nobody is sent for to settle what is over", async ({ signal }) => {
  const fault = "if new.job = 'compute.settlePlacement' then return null; end if; return new;";
  const { message } = await failureWith({ table: "infra.outbox", when: "before insert", fault }, { first: 5, signal });
  expect(message).toContain("not true: what is due is not left lying: settle ");
}, 120_000);

/** Each is what a careless statement about deliveries or results, or a careless relay, would do; `first` is a seed that finds it, so that few are lived through. */
const CARELESS = [
  {
    what: "a delivery that was refused is called delivered",
    first: 6,
    sentence: "what is delivered was answered with success",
    table: "data.webhook_delivery",
    when: "before update",
    fault: `if new.state = 'pending' and new.last_error is not null then
      new.state := 'delivered'; new.ended_at := new.due_at; new.due_at := null;
    end if;
    return new;`,
  },
  {
    what: "some events are not sent",
    first: 1,
    sentence: "an event is sent when its team wants it: workload.settled",
    table: "data.webhook_delivery",
    when: "before insert",
    fault: "if new.event_type = 'workload.settled' then return null; end if; return new;",
  },
  {
    what: "nobody is sent for to deliver",
    first: 5,
    sentence: "what is due is not left lying: send for ",
    table: "infra.outbox",
    when: "before insert",
    fault: "if new.job = 'data.deliverWebhook' then return null; end if; return new;",
  },
  {
    what: "deliveries from before the wall clock was set back wait until it has caught up",
    first: 5,
    sentence: "what is due is not left lying: send dlv_",
    table: "data.webhook_delivery",
    when: "before update",
    // As if the clock had been an hour ahead when the next try was written down, and nobody drew it in.
    fault: `if new.due_at > old.due_at then new.due_at := new.due_at + interval '1 hour'; end if;
    if new.due_at < old.due_at then new.due_at := old.due_at; end if;
    return new;`,
  },
  {
    what: "a later try sends other bytes",
    first: 5,
    sentence: "a delivery has the same bytes each time",
    table: "data.webhook_delivery",
    when: "before update",
    fault: "if new.attempts > old.attempts then new.body := old.body || ' '; end if; return new;",
  },
  {
    what: "an account event is numbered and not written down",
    first: 5,
    sentence: "account events are numbered without a gap",
    table: "data.account_event",
    when: "before insert",
    fault: "if new.type = 'asset.ready' then return null; end if; return new;",
  },
  {
    what: "results are never ended",
    first: 5,
    sentence: "what is due is not left lying: end the results of ",
    table: "compute.workload",
    when: "before update",
    fault: "if new.results_removed_at is not null then return null; end if; return new;",
  },
  {
    what: "bytes that nothing needs any more are kept",
    first: 22,
    sentence: "what is due is not left lying: remove the bytes ",
    table: "compute.result_object",
    when: "before update",
    fault: "if new.removing_since is not null then return null; end if; return new;",
  },
  {
    what: "a log outlives the results of its workload",
    first: 5,
    sentence: "results end after their workload, all of them",
    table: "compute.placement",
    when: "before update",
    fault: "new.log_removed_at := null; return new;",
  },
  {
    what: "a log is committed under another name than it is stored under",
    first: 5,
    sentence: "what is stored has a row, and is not being removed while something refers to it",
    table: "compute.placement",
    when: "before update",
    fault: `if new.log_committed_at is not null and old.log_committed_at is null then
      new.log_sha256 := reverse(new.log_sha256);
    end if;
    return new;`,
  },
  {
    what: "the relay takes one job more than it publishes",
    first: 5,
    sentence: "a job leaves the outbox for the queue",
    table: "infra.outbox",
    when: "after delete",
    fault: `if pg_trigger_depth() = 1 then
      delete from infra.outbox where id = (select max(id) from infra.outbox);
    end if;
    return null;`,
  },
] as const;

test.for(CARELESS.map((one) => [one.what, one] as const))(
  "a world fails in which %s",
  { timeout: 120_000 },
  async ([, { sentence, first, ...broken }], { signal }) => {
    const { message } = await failureWith(broken, { first, signal });
    expect(message).toContain(`not true: ${sentence}`);
  },
);
