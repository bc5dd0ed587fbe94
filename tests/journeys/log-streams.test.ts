import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { beginCommand } from "../support/command-line.ts";
import { sharedPlatform } from "../support/platform.ts";
import { builtCommandLine } from "../support/platform-build.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import {
  cancel,
  collect,
  EVENTS,
  ends,
  LOGS,
  type LogItem,
  script,
  settles,
  sha256,
  submit,
  within,
  writes,
} from "../support/workloads.ts";

const MIB = 1024 * 1024;
const platform = sharedPlatform({ NODUS_LOG_CAPTURE_MIB: "8", NODUS_LOG_COMMITTED_MIB: "8" });

/** Lines with bytes that are no UTF-8, cut characters, carriage returns and a line of a megabyte. */
const NASTY = `i=0; while [ $i -lt 200 ]; do printf 'line %d \\377\\300 caf\\303\\251 \\360\\237\\230\\200 50%%\\r100%%\\r\\n' $i
  i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.1; done; head -c 1048576 /dev/zero | tr '\\0' x; printf '\\n\\303'`;
const NASTY_BYTES = Buffer.concat([
  ...Array.from({ length: 200 }, (_, i) =>
    Buffer.concat([Buffer.from(`line ${i} `), Buffer.from([0xff, 0xc0]), Buffer.from(" café 😀 50%\r100%\r\n")]),
  ),
  Buffer.alloc(MIB, "x"),
  Buffer.from([0x0a, 0xc3]),
]);

test("a stream taken up again a hundred times at random bytes, live and later, is exact to the byte", {
  timeout: 90_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script(NASTY));
  const random = seeded(4711);
  const cuts = Array.from({ length: 99 }, () => random(NASTY_BYTES.length)).sort((a, b) => a - b);
  const pieces: Buffer[] = [];
  let from = 0;
  for (const cut of [...cuts, null]) {
    const after = from === 0 ? "" : `main:1:${from}`;
    const { bytes, last } = await read(client, random(2) === 0, { id, after }, cut === null ? null : cut - from);
    pieces.push(bytes);
    from += bytes.length;
    if (cut === null) expect(last?.end).toMatchObject({ totalBytes: NASTY_BYTES.length, sha256: sha256(NASTY_BYTES) });
  }
  const whole = Buffer.concat(pieces);
  expect(whole.length).toBe(NASTY_BYTES.length);
  expect(whole.equals(NASTY_BYTES)).toBe(true);
  const saved = await client.rest("getWorkloadLogs", { path: { id } });
  expect(saved.bytes.equals(NASTY_BYTES)).toBe(true);
});

test("the text of a stream is its bytes decoded, wherever the chunks were cut", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script(NASTY));
  const items: LogItem[] = (await collect(client.overEvents(LOGS, { id }))).map((item) => item.workloadLogs);
  const text = items.map((item) => item.text).join("");
  expect(text.length).toBe(new TextDecoder().decode(NASTY_BYTES).length);
  expect(text === new TextDecoder().decode(NASTY_BYTES)).toBe(true);
  const offsets = items.map((item) => item.offset);
  expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
});

test("a million lines and then code 1: the last line is kept, and the code is told", { timeout: 120_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, { source: { command: ["sh", "-c", "seq 1000000; exit 1"] } });
  const state = await settles(client, id, 100_000);
  expect(state).toMatchObject({ status: "failed", reason: "exit_nonzero", exitCode: 1 });
  const { bytes, headers } = await until("the log is committed", async () => {
    const answer = await client.rest("getWorkloadLogs", { path: { id } });
    return answer.headers.has("x-nodus-log-source") ? null : answer;
  });
  const expected = Buffer.from(`${Array.from({ length: 1_000_000 }, (_, i) => i + 1).join("\n")}\n`);
  expect(bytes.length).toBe(expected.length);
  expect(bytes.equals(expected)).toBe(true);
  expect(headers.get("x-nodus-sha256")).toBe(sha256(expected));
});

test("a log beyond its limit is cut there, and says so", { timeout: 120_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("head -c 9000000 /dev/zero | tr '\\0' y"));
  const state = await settles(client, id, 100_000);
  expect(state).toMatchObject({ status: "completed" });
  expect(state.placements[0]).toMatchObject({ logTruncated: true });
  const items = await collect(client.overSocket(LOGS, { id }));
  expect(items.at(-1).workloadLogs.end).toMatchObject({ truncated: true, totalBytes: state.placements[0].logBytes });
  const { body } = await client.rest("listWorkloadEvents", { path: { id } });
  expect(body.events.map((event: { event_type: string }) => event.event_type)).toContain("workload.log_truncated");
});

test("the log of cancelled work can be read", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo before; sleep 100"));
  await writes(client, id, "before");
  await cancel(client, id);
  await settles(client, id);
  expect((await client.rest("getWorkloadLogs", { path: { id } })).body).toBe("before\n");
});

test("events after any cursor are the rest of the events, without gap or repeat", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("true"));
  const all = seqs(await collect(client.overSocket(EVENTS, { id })));
  expect(all).toEqual(all.map((_, i) => i + 1));
  for (const after of [0, 1, Math.floor(all.length / 2), all.length - 1, all.length]) {
    const later = seqs(await collect(client.overEvents(EVENTS, { id, after })));
    expect(later).toEqual(all.slice(after));
  }
});

test("subscriptions on one connection end one by one", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const [quick, slow] = await Promise.all([
    submit(client, script("echo quick")),
    submit(client, script("echo slow; while [ ! -e state/stop ]; do sleep 0.2; done")),
  ]);
  const socket = client.socket();
  try {
    const lasting = socket.iterate({ query: LOGS, variables: { id: slow } });
    const short = socket.iterate({ query: LOGS, variables: { id: quick } });
    const left = socket.iterate({ query: LOGS, variables: { id: slow } });
    await left.next();
    await left.return?.();
    expect((await collect(short)).length).toBeGreaterThan(1);
    expect((await lasting.next()).value).toMatchObject({ data: { workloadLogs: { text: "slow\n" } } });
    await cancel(client, slow);
    const rest = await collect(lasting);
    expect(rest.at(-1)).toMatchObject({ data: { workloadLogs: { complete: true } } });
  } finally {
    await socket.dispose();
  }
});

test("a revoked key's streams end, and nobody else's", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo up; while [ ! -e state/stop ]; do sleep 0.2; done"));
  await writes(client, id, "up");
  const made = await client.query(
    'mutation { createApiKey(input: { name: "short-lived", scopes: ["workloads:read"] }) { key apiKey { id } } }',
  );
  const guest = client.as(made.createApiKey.key);
  const streams = [guest.overSocket(LOGS, { id }), guest.overEvents(LOGS, { id })];
  const others = client.overSocket(LOGS, { id });
  for (const stream of [...streams, others]) await stream.next();
  await client.query("mutation revoke($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { revokedAt } } }", {
    id: made.createApiKey.apiKey.id,
  });
  for (const stream of streams) {
    const end = await within(
      stream.next().then(
        () => "an item",
        () => "an error",
      ),
      15_000,
      "the stream of the revoked key ends",
    );
    expect(end).toBe("an error");
  }
  expect((await guest.graphql("{ me { keyId } }")).errors[0]?.extensions.code).toBe("unauthorized");
  expect((await guest.rest("identity")).status).toBe(401);
  const next = others.next();
  await cancel(client, id);
  expect((await within(next, 15_000, "the other stream goes on")).value.workloadLogs.complete).toBe(true);
});

test("a stream refuses what is foreign, unknown or beyond the end of the log", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo ok"));
  await ends(client, id);
  const codeOf = (variables: object) =>
    collect(client.overSocket(LOGS, { ...variables })).then(
      () => null,
      (error: unknown) => (Array.isArray(error) ? error[0].extensions.code : (error as { code?: string }).code),
    );
  expect(await codeOf({ id: "wl_unknown" })).toBe("not_found");
  expect(await codeOf({ id, after: "main:1:4000" })).toBe("invalid_cursor");
  expect(await codeOf({ id, after: "nonsense" })).toBe("invalid_cursor");
});

test("the documented program follows a log to its end, and is refused what is not there", {
  timeout: 60_000,
}, async () => {
  const id = await submit(platform().admin, script("for i in 1 2 3 4 5; do echo step $i; sleep 0.2; done"));
  const followed = await program([projectFile("docs/examples/follow-log.mjs"), id]);
  expect(followed).toEqual({ stdout: "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n", stderr: "", failed: false });
  const refused = await program([projectFile("docs/examples/follow-log.mjs"), "wl_unknown"]);
  expect(refused).toMatchObject({ stdout: "", stderr: expect.stringContaining("not_found"), failed: true });
  expect(refused.stderr).not.toContain("node:internal");
  const stranger = await program([projectFile("docs/examples/follow-log.mjs"), id], process.execPath, "nk_wrong");
  expect(stranger).toMatchObject({ stdout: "", stderr: expect.stringContaining("4401: unauthorized"), failed: true });
  const aimless = await program([projectFile("docs/examples/follow-log.mjs")]);
  expect(aimless).toMatchObject({ stdout: "", stderr: expect.stringContaining("usage: "), failed: true });
});

test("whoever stops following is told that the work goes on, and the work does", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo begun; sleep 120"));
  const environment = { NODUS_BASE_URL: client.origin, NODUS_API_KEY: client.key! };
  const following = await beginCommand(["logs", "-f", id], environment);
  await until("the output is shown", () => following.stdout() === "begun\n");
  process.kill(following.pid, "SIGINT");
  const { stderr } = await following.ended;
  expect(stderr).toContain(`The workload goes on: nodus logs -f ${id} follows it again, nodus cancel ${id} ends it.`);
  const { workload } = await client.query("query($id: ID!) { workload(id: $id) { status } }", { id });
  expect(workload.status).toBe("running");
  await cancel(client, id);
});

test("a reader of the command line that has read enough ends it without a word", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("seq 400000"));
  await ends(client, id);
  const command = `"$0" "$1" logs ${id} | head -n 1`;
  const { stdout, stderr } = await program(["-c", command, process.execPath, await builtCommandLine()], "sh");
  expect([stdout, stderr]).toEqual(["1\n", ""]);
});

/** Runs a program as the administrator of the platform, to its end. */
function program(
  args: string[],
  file = process.execPath,
  key = platform().admin.key!,
): Promise<{ stdout: string; stderr: string; failed: boolean }> {
  const env = { PATH: process.env.PATH, NODUS_BASE_URL: platform().admin.origin, NODUS_API_KEY: key };
  return new Promise((resolve) =>
    execFile(file, args, { env, timeout: 30_000 }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, failed: error !== null }),
    ),
  );
}

async function read(
  client: PlatformClient,
  overSocket: boolean,
  variables: { id: string; after: string },
  wanted: number | null,
): Promise<{ bytes: Buffer; last: LogItem | null }> {
  if (wanted === 0) return { bytes: Buffer.alloc(0), last: null };
  const stream = overSocket ? client.overSocket(LOGS, variables) : client.overEvents(LOGS, variables);
  const pieces: Buffer[] = [];
  let length = 0;
  let last: LogItem | null = null;
  for await (const { workloadLogs } of stream) {
    last = workloadLogs as LogItem;
    pieces.push(Buffer.from(last.data, "base64"));
    length += pieces.at(-1)!.length;
    if (wanted !== null && length >= wanted) break;
  }
  const bytes = Buffer.concat(pieces);
  return { bytes: wanted === null ? bytes : bytes.subarray(0, wanted), last };
}

function seqs(items: { workloadEvents: { event: { seq: number } | null } }[]): number[] {
  return items.flatMap(({ workloadEvents: { event } }) => (event ? [event.seq] : []));
}
