import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { tarOf } from "../support/archive-samples.ts";
import { sharedPlatform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { until } from "../support/until.ts";
import { cancel, script, settles, submit, writes } from "../support/workloads.ts";

/** What a run is given: its source, its inputs, its secrets and its network. */
const platform = sharedPlatform();

async function upload(client: PlatformClient, name: string, bytes: Uint8Array): Promise<string> {
  const headers = { "content-type": "application/octet-stream" };
  const { status, body } = await client.rest("uploadAsset", { query: { name }, body: bytes, headers });
  expect({ status, state: body.state }).toEqual({ status: 201, state: "ready" });
  return body.id;
}

async function logOf(client: PlatformClient, id: string): Promise<string> {
  return (await client.rest("getWorkloadLogs", { path: { id } })).body;
}

test("a program uploaded as an archive runs on inputs uploaded beside it", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const source = gzipSync(
    await tarOf([
      { path: "run.sh", content: 'cat data/greeting.txt; cat "$NODUS_INPUT_words"/*; ls "$NODUS_INPUT_tree/deep"\n' },
      { path: "data/greeting.txt", content: "hello from the archive\n" },
    ]),
  );
  const assetId = await upload(client, "program.tar.gz", source);
  const words = await upload(client, "words.txt", Buffer.from("one two\n"));
  const tree = await upload(client, "tree.tar", await tarOf([{ path: "deep/leaf.txt", content: "leaf" }]));
  const id = await submit(client, {
    source: { assetId, command: ["sh", "run.sh"] },
    inputs: [
      { name: "words", assetId: words },
      { name: "tree", assetId: tree },
    ],
  });
  const state = await settles(client, id);
  const log = await logOf(client, id);
  expect({ status: state.status, log }).toEqual({
    status: "completed",
    log: "hello from the archive\none two\nleaf.txt\n",
  });
});

test("an asset that work uses cannot be deleted, and can once the work is over", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const assetId = await upload(client, "used.txt", Buffer.from("used\n"));
  const id = await submit(
    client,
    script("cat $NODUS_INPUT_used/*; while [ ! -e state/stop ]; do sleep 0.2; done", {
      inputs: [{ name: "used", assetId }],
    }),
  );
  await writes(client, id, "used");
  const refused = await client.rest("deleteAsset", { path: { id: assetId } });
  expect([refused.status, refused.body.error]).toEqual([409, "asset_in_use"]);
  await cancel(client, id);
  await settles(client, id);
  await until("the asset is let go of", async () => {
    return (await client.rest("deleteAsset", { path: { id: assetId } })).status === 204;
  });
  const listed = (await client.rest("listAssets")).body.assets.map((asset: { id: string }) => asset.id);
  expect(listed).not.toContain(assetId);
});

test("a secret reaches the program and nothing else: it stands nowhere in logs, events, rows or the platform's output", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const value = `s3cret-${crypto.randomUUID()}`;
  await client.rest("putSecret", { body: { name: "API_TOKEN", value } });
  const id = await submit(
    client,
    script(
      `printf 'length %s\\n' "\${#NODUS_SECRET_API_TOKEN}"; echo "plain $NODUS_SECRET_API_TOKEN end"
       half=$(printf %s "$NODUS_SECRET_API_TOKEN" | cut -c1-20); printf 'split %s' "$half"; sleep 0.3
       printf '%s\\n' "$(printf %s "$NODUS_SECRET_API_TOKEN" | cut -c21-)"; echo "$NODUS_SECRET_API_TOKEN" >&2`,
      { policy: { secretRefs: ["API_TOKEN"] } },
    ),
  );
  const state = await settles(client, id);
  const log = await logOf(client, id);
  expect({ status: state.status, log }).toMatchObject({ status: "completed" });
  expect(log).toContain(`length ${value.length}\n`);
  expect(log).toMatch(/plain .+ end\n/);
  const { body: events } = await client.rest("listWorkloadEvents", { path: { id } });
  const { body: detail } = await client.rest("getWorkload", { path: { id } });
  const { body: secrets } = await client.rest("listSecrets");
  expect(detail.payload.policy.secret_refs).toEqual(["API_TOKEN"]);
  for (const place of [log, JSON.stringify([events, detail, secrets]), platform().output, await allRows()])
    expect(place.includes(value)).toBe(false);
});

test("a retired secret is refused for new work", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  await client.rest("putSecret", { body: { name: "OLD", value: "something" } });
  expect((await client.rest("deleteSecret", { path: { name: "OLD" } })).status).toBe(204);
  const { errors } = await client.graphql(
    `mutation { createWorkload(input: { idempotencyKey: "old", workload: {
       source: { command: ["true"] }, policy: { secretRefs: ["OLD"] } } }) { workload { id } } }`,
  );
  expect(errors[0]?.extensions).toMatchObject({ code: "secret_not_found", field: expect.stringContaining("secret") });
});

/** Asks the guest's proxy for tunnels, and the network itself for connections past it. */
const PROBE = `proxy=\${https_proxy#http://}; host=\${proxy%:*}; port=\${proxy#*:}
ask() { exec 3<>/dev/tcp/$host/$port && printf 'CONNECT %s HTTP/1.1\\r\\n\\r\\n' "$1" >&3 && read -r -t 10 _ status _ <&3; echo "$1 $status"; exec 3>&-; }`;

test("a guest reaches listed hosts alone, others are refused and reported", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const command = ["bash", "-c", `${PROBE}; ask denied.invalid:443; ask listed.invalid:443`];
  const id = await submit(client, { source: { command }, policy: { egressAllow: ["listed.invalid"] } });
  const state = await settles(client, id);
  const log = await logOf(client, id);
  expect({ status: state.status, log }).toMatchObject({ status: "completed" });
  expect(log).toContain("denied.invalid:443 403");
  expect(log).toMatch(/^listed\.invalid:443 (?!403)/m);
  const { events } = (await client.rest("listWorkloadEvents", { path: { id } })).body;
  const denied = events.filter((event: { event_type: string }) => event.event_type === "workload.egress_denied");
  expect(denied.map((event: { payload: { hostname: string } }) => event.payload.hostname)).toEqual(["denied.invalid"]);
  expect(events[0].payload.network).toBe("allowlist");
});

test("an open network is open to the world and not to this machine or its neighbours", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const { port } = platform();
  const command = [
    "bash",
    "-c",
    `${PROBE}; ask 127.0.0.1:${port}; ask 169.254.169.254:80; ask 10.0.0.1:443; ask '[::1]:${port}'
     (exec 4<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo reached || echo unreachable`,
  ];
  const id = await submit(client, { source: { command } });
  await settles(client, id);
  const log = await logOf(client, id);
  expect(log.match(/403/g) ?? []).toHaveLength(4);
  expect(log).toMatch(/unreachable\n$/);
});

/** Every row of every table, as text. */
async function allRows(): Promise<string> {
  const tables = await platform().sql<{ name: string }>(
    `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  expect(tables.length).toBeGreaterThan(20);
  const rows: string[] = [];
  for (const { name } of tables)
    rows.push(...(await platform().sql<{ row: string }>(`select t::text as row from ${name} t`)).map(({ row }) => row));
  const texts = rows.join("\n");
  // Bytes are shown in hexadecimal: read them as well.
  return (
    texts + [...texts.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex]) => Buffer.from(hex!, "hex").toString()).join("\n")
  );
}
