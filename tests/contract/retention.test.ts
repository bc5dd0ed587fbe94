import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { commitLogJob } from "../../workers/compute/commit-log.ts";
import { keptFor, retention } from "../../workers/reconcile/retention.ts";
import { jobContext } from "../support/jobs.ts";
import { finishedRun } from "./finished-run.ts";
import { type RestFace, restFace } from "./rest-face.ts";

const DAY_MS = 24 * 3_600_000;
let face: RestFace;

beforeAll(async () => {
  face = await restFace();
});
afterAll(() => face.close());

test("after its time a log is not found and an output is gone, while the workload and its ledger are there", async () => {
  const { db, clock } = face.compute;
  const { workloadId: id, log } = await finishedRun(face);
  const [placement] = await db.sql<{ id: string }>("select id from compute.placement where workload_id = $1", [id]);
  await commitLogJob(face.results).body({ placementId: placement!.id }, jobContext({ db, clock }));
  await db.sql("update compute.workload set settled_at = terminal_at where id = $1", [id]);
  const name = "results.tar";
  const ask = async () => {
    const answers = await Promise.all([
      face.ask("getWorkloadLogs", { path: { id } }),
      face.ask("downloadWorkloadOutput", { path: { id, name } }),
      face.ask("listWorkloadArtifacts", { path: { id } }),
      face.ask("getWorkload", { path: { id } }),
      face.ask("getWorkloadLedger", { path: { id } }),
      face.ask("getWorkloadRouting", { path: { id } }),
    ]);
    return answers.map(({ status, body }) => [status, (body as { error?: string } | null)?.error]);
  };
  const round = retention({
    ...{ db, clock, assets: { list: async () => [] }, results: face.results },
    logger: createLogger({ level: "fatal", role: "test" }),
    kept: keptFor(90),
    knownJobs: [],
  });
  const fine = [200, undefined];

  clock.advance(2 * DAY_MS); // the live log's time is over: what is read is the committed one
  await round.run(new AbortController().signal, null);
  expect(await ask()).toEqual([fine, fine, fine, fine, fine, fine]);
  expect((await face.ask("getWorkloadLogs", { path: { id } })).text).toBe(log.toString());

  clock.advance(90 * DAY_MS);
  await round.run(new AbortController().signal, null);
  expect(await ask()).toEqual([[404, "log_not_found"], [410, "output_gone"], fine, fine, fine, fine]);

  clock.advance(400 * DAY_MS);
  await round.run(new AbortController().signal, null);
  expect(await ask()).toEqual([[404, "log_not_found"], [410, "output_gone"], fine, fine, fine, fine]);
});
