import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { ends, script, settles, sha256, stateOf, submit, writes } from "../support/workloads.ts";

const platform = sharedPlatform();

test("a clean stop and start keeps keys, history and results, and running work runs on", {
  timeout: 120_000,
}, async () => {
  const client = platform().admin;
  const done = await submit(client, script("echo done; mkdir outputs; echo kept > outputs/x"));
  const before = await settles(client, done);
  const saved = (await client.rest("getWorkloadLogs", { path: { id: done } })).body;
  const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id: done } })).body;
  const waiting = await submit(client, script("true", { requirements: { gpu: "B200" } }));
  const running = await submit(client, script("echo up; sleep 6; echo through"));
  await writes(client, running, "up");

  expect(await platform().stop()).toBe(0);
  expect(
    platform()
      .processes()
      .filter(({ commandLine }) => commandLine.includes("postgres")),
  ).toEqual([]);
  await platform().start();

  expect(await stateOf(client, done)).toEqual(before);
  expect((await client.rest("getWorkloadLogs", { path: { id: done } })).body).toBe(saved);
  const [output] = outputs;
  const download = await client.rest("downloadWorkloadOutput", { path: { id: done, name: output.name } });
  expect(sha256(download.bytes)).toBe(output.sha256);
  expect(await stateOf(client, waiting)).toMatchObject({ status: expect.stringMatching(/planning|accepted/) });
  await client.rest("cancelWorkload", { path: { id: waiting } });
  expect(await ends(client, waiting)).toMatchObject({ status: "cancelled" });
  const end = await settles(client, running, 60_000);
  expect(end).toMatchObject({ status: "completed", exitCode: 0 });
  expect(end.placements).toHaveLength(1);
  expect((await client.rest("getWorkloadLogs", { path: { id: running } })).body).toBe("up\nthrough\n");
});

test("a second platform on the same data folder is refused in a sentence and disturbs nothing", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo up; sleep 4; echo through"));
  await writes(client, id, "up");
  const second = await platform().command(["up"]);
  expect(second.code).toBeGreaterThan(0);
  expect(second.stderr).toMatch(/another platform/i);
  expect(second.stderr).not.toMatch(/\n +at /);
  expect(await settles(client, id)).toMatchObject({ status: "completed" });
  expect((await client.send("GET", "/readyz")).status).toBe(200);
});
