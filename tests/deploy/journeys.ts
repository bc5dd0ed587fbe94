import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { PlatformClient } from "../support/platform-client.ts";
import { until } from "../support/until.ts";
import { cancel, LOGS, type LogItem, reaches, script, settles, stateOf, submit, within } from "../support/workloads.ts";
import { run } from "./engine.ts";
import { ALL_SERVICES, type Project } from "./project.ts";

/** What a person does with a deployment; fails with what did not hold. */
export type Journey = (project: Project, client: PlatformClient) => Promise<void>;

const LINES = 24;
const COUNTS = `n=0; while [ $n -lt ${LINES} ]; do n=$((n+1)); echo line $n; sleep 0.25; done`;
const COUNTED = Array.from({ length: LINES }, (_, n) => `line ${n + 1}\n`).join("");
/** Until a host that is not heard is given up, and its work runs again. */
const RESUMED_MS = 240_000;

/** The journeys in their order, by what each shows. */
export const JOURNEYS: Readonly<Record<string, Journey>> = {
  "a guest runs isolated, its log is read while it runs, and its file afterwards": runs,
  "a workload that runs is cancelled": isCancelled,
  ...Object.fromEntries(
    ALL_SERVICES.map((service): [string, Journey] => [
      `${service} is killed with -9 in mid-run, and the run ends as if nothing had been`,
      (project, client) => survives(client, () => project.kill(service), service === "host-agent"),
    ]),
  ),
  "everything is stopped and started again in mid-run": (project, client) =>
    survives(client, () => stopAndStart(project), true),
  "a new image replaces every container in mid-run": (project, client) =>
    survives(client, () => project.release(), true),
  "no log has a secret": tellNoSecret,
};

async function runs(_: Project, client: PlatformClient): Promise<void> {
  const id = await submit(client, script(`id -u; ${COUNTS}; mkdir -p outputs; echo made > outputs/made.txt`));
  await follow(client, id, async (text) => {
    if (text.includes("line 3\n")) assert.equal((await stateOf(client, id)).status, "running");
  });
  const end = await settles(client, id);
  assert.equal(end.status, "completed");
  const { level, ownUid, seccomp, limits } = end.placements[0].isolation;
  assert.deepEqual({ level, ownUid, seccomp }, { level: "bubblewrap", ownUid: true, seccomp: true });
  assert.match(limits, /^cgroup-v[12]$/);
  const log = await follow(client, id);
  assert.notEqual(log.split("\n")[0], "0", "the guest is not root");
  assert.ok(log.endsWith(COUNTED));
  const { body } = await client.rest("listWorkloadOutputs", { path: { id } });
  assert.equal(body.outputs.length, 1);
}

async function isCancelled(_: Project, client: PlatformClient): Promise<void> {
  const id = await submit(client, script("trap '' TERM; echo up; while :; do sleep 0.2; done"));
  await reaches(client, id, ["running"], 60_000);
  await cancel(client, id);
  assert.equal((await settles(client, id, 60_000)).status, "cancelled");
}

/** A run is followed over whatever happens in its middle: it completes, and each line is there once in its last generation. */
async function survives(client: PlatformClient, happens: () => Promise<void>, guestsDie: boolean): Promise<void> {
  const id = await submit(client, script(COUNTS));
  await within(firstLines(client, id), 60_000, "the run is in its middle");
  await happens();
  const end = await until("the run is over and settled", () => settledOrNull(client, id), {
    timeoutMs: RESUMED_MS,
    everyMs: 1_000,
  });
  const outcomes = end.placements.map(({ outcome }: { outcome: string }) => outcome);
  assert.equal(end.status, "completed", JSON.stringify(end));
  if (!guestsDie) assert.equal(end.placements.length, 1, `the run was not disturbed: ${outcomes}`);
  const log = await follow(client, id, undefined, end.placements.length);
  assert.equal(log, COUNTED, `every line is there once; generations: ${outcomes}`);
}

async function firstLines(client: PlatformClient, id: string): Promise<void> {
  let text = "";
  for await (const { workloadLogs } of client.overEvents(LOGS, { id })) {
    text += workloadLogs.text;
    if (text.includes("line 3\n")) return;
  }
  throw new Error(`the log ended after ${JSON.stringify(text)}`);
}

/** Null while it is not, or while nobody can be asked. */
async function settledOrNull(client: PlatformClient, id: string) {
  const state = await stateOf(client, id).catch(() => null); // a part is being started again
  return state?.settledAt ? state : null;
}

/** The log of one generation, over server-sent events, to its end. */
async function follow(
  client: PlatformClient,
  id: string,
  onText: (text: string) => Promise<void> = async () => {},
  generation = 1,
): Promise<string> {
  let log = "";
  for await (const { workloadLogs } of client.overEvents(LOGS, { id })) {
    const { text, generation: of } = workloadLogs as LogItem;
    if (of !== generation) continue;
    log += text;
    await onText(text);
  }
  return log;
}

async function stopAndStart(project: Project): Promise<void> {
  await project.compose(["stop"], 200_000);
  await project.compose(["start"], 200_000);
  await project.healthy();
}

async function tellNoSecret(project: Project, client: PlatformClient): Promise<void> {
  const id = await submit(client, script("sleep 1"));
  await settles(client, id, 60_000);
  await sleep(1_000); // what is logged late
  const { password, masterKey } = project.secrets;
  const ids = await Promise.all(ALL_SERVICES.map((service) => project.containerOf(service)));
  for (const [n, container] of ids.entries()) {
    const log = await run("docker", ["logs", container]);
    for (const secret of [password, masterKey, client.key!])
      assert.ok(!log.includes(secret), `the log of ${ALL_SERVICES[n]} has a secret`);
  }
}
