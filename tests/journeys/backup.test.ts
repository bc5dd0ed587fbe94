import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { script, settles, stateOf, submit } from "../support/workloads.ts";

/** The steps of docs/operating.md: stop, copy the data folder, start on the copy. */
let first: Platform;
let restored: Platform;
let before: Awaited<ReturnType<typeof everything>> & { id: string; assetId: string };

/** What must be the same before and after. */
async function everything(client: PlatformClient, id: string, assetId: string) {
  const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id } })).body;
  const download = await client.rest("downloadWorkloadOutput", { path: { id, name: outputs[0].name } });
  return {
    state: await stateOf(client, id),
    log: (await client.rest("getWorkloadLogs", { path: { id } })).body,
    ledger: (await client.rest("getWorkloadLedger", { path: { id } })).body,
    outputs,
    output: download.body,
    asset: (await client.rest("getAsset", { path: { id: assetId } })).body,
    secrets: (await client.rest("listSecrets")).body,
  };
}

const withSecret = (assetId: string) =>
  script(
    'cat "$NODUS_INPUT_words"/*; printf "%s" "$NODUS_SECRET_TOKEN" | wc -c; mkdir outputs; echo kept > outputs/kept.txt',
    {
      inputs: [{ name: "words", assetId }],
      policy: { secretRefs: ["TOKEN"] },
    },
  );

function copyOf(folder: string): string {
  const copy = newDataFolder();
  execFileSync("cp", ["-a", `${folder}/.`, copy]);
  return copy;
}

beforeAll(async () => {
  first = await Platform.start();
  const client = first.admin;
  await client.rest("putSecret", { body: { name: "TOKEN", value: "twelve-chars" } });
  const octets = { "content-type": "application/octet-stream" };
  const uploaded = await client.rest("uploadAsset", { query: { name: "words.txt" }, body: "words\n", headers: octets });
  const assetId = uploaded.body.id;
  const id = await submit(client, withSecret(assetId));
  expect((await settles(client, id)).status).toBe("completed");
  before = { id, assetId, ...(await everything(client, id, assetId)) };
  expect(await first.stop()).toBe(0);
  restored = await Platform.start({}, { dataDir: copyOf(first.dataDir) });
  rmSync(first.dataDir, { recursive: true }); // nothing of the original helps
}, 180_000);

afterAll(async () => {
  await restored?.dispose();
  await first?.dispose();
}, 60_000);

test("a copy of the data folder, started elsewhere, has everything and goes on", { timeout: 90_000 }, async () => {
  const client = restored.admin;
  const { id, assetId, ...kept } = before;
  expect(await everything(client, id, assetId)).toEqual(kept);
  const again = await submit(client, withSecret(assetId));
  expect((await settles(client, again)).status).toBe("completed");
  expect((await client.rest("getWorkloadLogs", { path: { id: again } })).body).toBe("words\n12\n");
});

test("without the key file everything but the secrets is there, and the platform says which secret it cannot read", {
  timeout: 90_000,
}, async () => {
  expect(await restored.stop()).toBe(0);
  const told = "stored secrets were encrypted with a master key that this process does not have";
  expect(restored.output).not.toContain(told);
  rmSync(path.join(restored.dataDir, "master.key"));
  await restored.start();
  expect(restored.output).toContain(told);
  const client = restored.admin;
  const { id, assetId, ...kept } = before;
  expect(await everything(client, id, assetId)).toEqual(kept);
  const refused = await client.rest("createWorkload", {
    body: { source: { command: ["true"] }, policy: { secret_refs: ["TOKEN"] } },
    headers: { "idempotency-key": crypto.randomUUID() },
  });
  expect(refused.body).toMatchObject({ error: "secret_unreadable", field: "/policy/secret_refs/0" });
  await client.rest("putSecret", { body: { name: "TOKEN", value: "twelve-chars" } });
  const again = await submit(client, withSecret(assetId));
  expect((await settles(client, again)).status).toBe("completed");
});
