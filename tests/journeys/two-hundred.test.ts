import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { processesWith } from "../support/process-table.ts";
import { until } from "../support/until.ts";
import { script, submit } from "../support/workloads.ts";

const platform = sharedPlatform();

const COUNT = 200;
/** Every tenth one fails, so that ends of both kinds are among them. */
const codeOf = (index: number) => (index % 10 === 0 ? 7 : 0);

test("two hundred workloads at once all end right, none twice, and never more than the machine has is reserved", {
  timeout: 240_000,
}, async () => {
  const client = platform().admin;
  const mark = `mark-${crypto.randomUUID()}`;
  const watch = watchReservations();
  const ids = await Promise.all(
    Array.from({ length: COUNT }, (_, i) =>
      submit(client, script(`export MARK=${mark}; echo run ${i}; sleep 0.$((${i} % 5)); exit ${codeOf(i)}`)),
    ),
  );
  expect(new Set(ids).size).toBe(COUNT);
  await until("all are settled", allSettled, { timeoutMs: 220_000, everyMs: 250 });
  const seen = await watch.end();
  expect(seen.excesses).toEqual([]);
  expect(seen.most).toBeGreaterThan(1);

  const ends = await platform().sql<{ id: string; status: string; exit_code: number; log: string; runs: number }>(
    `select w.id, w.status, w.exit_code::int, (select count(*)::int from compute.placement p where p.workload_id = w.id) as runs,
       (select string_agg(convert_from(c.bytes, 'UTF8'), '' order by c.seq) from compute.log_chunk c where c.workload_id = w.id) as log
     from compute.workload w`,
  );
  const byId = new Map(ends.map((end) => [end.id, end]));
  const expected = ids.map((id, i) => {
    const code = codeOf(i);
    return { id, status: code === 0 ? "completed" : "failed", exit_code: code, runs: 1, log: `run ${i}\n` };
  });
  expect(ids.map((id) => byId.get(id))).toEqual(expected);
  expect(processesWith(mark)).toEqual([]);
});

test("afterwards nothing is reserved or held, every charge is in the books, and the books balance", async () => {
  const [capacity] = await platform().sql("select sum(slots_used)::int as slots from compute.capacity");
  expect(capacity).toEqual({ slots: 0 });
  const [books] = await platform().sql(
    `select (sum(debit_micros) - sum(credit_micros))::int as difference,
       (sum(credit_micros) filter (where entry_type = 'customer_charge')
         = (select sum(spend_micros) from compute.workload)) as charged from compute.ledger_entry`,
  );
  expect(books).toEqual({ difference: 0, charged: true });
  const { account } = await platform().admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
});

async function allSettled(): Promise<boolean> {
  const [row] = await platform().sql<{ settled: number }>(
    "select count(*)::int as settled from compute.workload where settled_at is not null",
  );
  return row?.settled === COUNT;
}

interface Used {
  slots: number;
  most_slots: number;
  fits: boolean;
}

/** Reads the reservations over and over until it is ended. */
function watchReservations(): { end(): Promise<{ most: number; excesses: Used[] }> } {
  const excesses: Used[] = [];
  let most = 0;
  let ended = false;
  const watching = (async () => {
    while (!ended) {
      const rows = await platform().sql<Used>(
        `select slots_used::int as slots, slots::int as most_slots, slots_used <= slots and cpu_millis_used <= cpu_millis
           and memory_mb_used <= memory_mb and least(slots_used, cpu_millis_used, memory_mb_used) >= 0 as fits
         from compute.capacity`,
      );
      most = Math.max(most, ...rows.map((row) => row.slots));
      excesses.push(...rows.filter((row) => !row.fits));
      await sleep(20);
    }
  })();
  return {
    end: async () => {
      ended = true;
      await watching;
      return { most, excesses };
    },
  };
}
