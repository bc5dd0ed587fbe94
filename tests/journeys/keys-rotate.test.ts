import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { script, settles, submit } from "../support/workloads.ts";

const platform = sharedPlatform();

test("the master key is changed while the platform is stopped, and refused while it runs; runs get their secrets after it", async () => {
  const client = platform().admin;
  await client.rest("putSecret", { body: { name: "TOKEN", value: "twelve chars" } });
  const file = path.join(platform().dataDir, "master.key");
  const before = readFileSync(file, "utf8");

  const refused = await platform().command(["keys", "rotate"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("The platform runs. Stop it");
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(existsSync(`${file}.next`)).toBe(false);

  await platform().stop();
  const rotated = await platform().command(["keys", "rotate"]);
  expect(rotated).toMatchObject({ code: 0, stdout: "data.secret_version: 1 wrapped anew\n" });
  expect(readFileSync(file, "utf8")).not.toBe(before);
  expect(readFileSync(`${file}.old`, "utf8")).toBe(before);

  await platform().start();
  const command = 'printf %s "$NODUS_SECRET_TOKEN" | wc -c';
  const id = await submit(client, script(command, { policy: { secretRefs: ["TOKEN"] } }));
  expect(await settles(client, id)).toMatchObject({ status: "completed" });
  expect((await client.rest("getWorkloadLogs", { path: { id } })).body.trim()).toBe("12");
}, 120_000);
