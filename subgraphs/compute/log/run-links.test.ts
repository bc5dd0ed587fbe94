import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { insertAccount } from "../../../tests/support/compute-fixtures.ts";
import type { TestDatabase } from "../../../tests/support/database.ts";
import { insertHosted, lifecycleDatabase } from "../../../tests/support/lifecycle-world.ts";
import { lifecycleDeps } from "../../../tests/support/miniature-host.ts";
import { Workload } from "../workload/workload.entity.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import { runPages } from "./run-pages.ts";

describe("addresses of runs in a text", () => {
  const pages = (text: string) => runPages(text, "acme", "speech model");
  const RUN = "https://wandb.ai/acme/speech%20model/runs/abc123";

  test("are found once each, in colour and without", () => {
    expect(pages(`wandb: View run at ${RUN}\nwandb: \u001b[34m\u001b[4m${RUN}\u001b[0m\n`)).toEqual([RUN]);
    expect(pages(`${RUN}/overview?x=1 and ${RUN.replace("abc123", "d-4_e")}.`)).toEqual([
      RUN,
      RUN.replace("abc123", "d-4_e"),
    ]);
  });

  test.each([
    ["another entity", RUN.replace("acme", "other")],
    ["another project", RUN.replace("speech%20model", "speech")],
    ["another origin", RUN.replace("wandb.ai", "wandb.ai.evil.example")],
    ["a user in front of the host", RUN.replace("wandb.ai/", "wandb.ai@evil.example/")],
    ["no encryption", RUN.replace("https", "http")],
    ["no run", "https://wandb.ai/acme/speech%20model/runs/"],
    ["a page that is no run", "https://wandb.ai/acme/speech%20model/reports/abc"],
    ["a broken escape", RUN.replace("%20", "%2")],
    ["a way out of the project", RUN.replace("speech%20model", "speech%20model%2F..%2Fother")],
  ])("are none with %s", (_, text) => {
    expect(pages(`${text} `)).toEqual([]);
  });
});

describe("a run with a live connection", () => {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  let database: TestDatabase;
  beforeAll(async () => {
    database = await lifecycleDatabase();
    await insertAccount(database.db, clock.now());
  });
  afterAll(() => database?.close());

  async function logging(env: Record<string, string> = { WANDB_ENTITY: "acme", WANDB_PROJECT: "speech" }) {
    const { db } = database;
    const { placed, host } = await insertHosted(lifecycleDeps(db, clock));
    await db.sql("update compute.stage set spec = spec || $2::jsonb where workload_id = $1", [
      placed.workloadId,
      JSON.stringify({ env }),
    ]);
    const seen = async () => {
      const workload = await db.row(Workload, "where t.id = $1", [placed.workloadId]);
      const events = await db.rows(WorkloadEvent, "where t.workload_id = $1 and t.type = 'workload.link_added'", [
        placed.workloadId,
      ]);
      return { links: workload!.links, events: events.map(({ payload }) => payload) };
    };
    return { host, seen };
  }
  const page = (run: string) => `https://wandb.ai/acme/speech/runs/${run}`;

  test("is linked to the runs that it says, however its output is cut, while it runs", async () => {
    const { host, seen } = await logging();
    const log = Buffer.from(
      `epoch 1\nwandb: View run at ${page("one")}\n…\nagain ${page("one")}\n${page("two")}\nend\n`,
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(log.length), { maxLength: 12 }), async (cuts) => {
        const { host, seen } = await logging();
        const at = [...new Set([0, ...cuts, log.length])].sort((a, b) => a - b);
        for (const [i, end] of at.slice(1).entries()) await host.apply(host.log(log.subarray(at[i]!, end)));
        expect((await seen()).links.map(({ url }) => url)).toEqual([page("one"), page("two")]);
      }),
      { numRuns: 12 },
    );
    const record = host.log(log);
    await host.apply(record);
    await host.apply(record); // said again after a lost answer
    const links = [page("one"), page("two")].map((url) => ({ kind: "wandb", url }));
    const found = await seen();
    expect(found.links).toEqual(links);
    expect(found.events).toMatchObject(links);
    expect(found.events).toHaveLength(2);
  }, 30_000);

  test("gets so many links and no more", async () => {
    const { host, seen } = await logging();
    const runs = Array.from({ length: LIMITS.workloadLinks + 10 }, (_, n) => page(`r${n}`));
    await host.apply(host.log(Buffer.from(`${runs.slice(0, 5).join("\n")}\n`)), host.log(Buffer.from(runs.join("\n"))));
    await host.apply(host.log(Buffer.from(`\n${page("late")}\n`)));
    expect((await seen()).links.map(({ url }) => url)).toEqual(runs.slice(0, LIMITS.workloadLinks));
  }, 30_000);

  test("is the only one that is linked", async () => {
    const { host, seen } = await logging({});
    await host.apply(host.log(Buffer.from(`${page("one")}\n`)));
    expect(await seen()).toEqual({ links: [], events: [] });
  }, 30_000);
});
