import { createHash } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openFollowers } from "../../../infra/live/follow.ts";
import { MEMBER } from "../../../tests/support/actors.ts";
import { insertAccount, insertPlaced, type Placed, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import type { LogItem } from "../../../tests/support/workloads.ts";
import { Placement } from "../placement/placement.entity.ts";
import { topics } from "../topics.ts";
import { moveWorkload } from "../workload/workload.transitions.ts";
import { logBytes } from "./log-source.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
  await insertAccount(graph.db, graph.clock.now());
});
afterAll(() => graph.close());

/** A log in all its ugliness: text in several scripts, invalid UTF-8, NUL, carriage returns and a very long line. */
const UGLY = Buffer.concat([
  Buffer.from("start\r\nprogress 1%\rprogress 2%\r"),
  Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0xe2, 0x82, 0xf0, 0x9f, 0x98, 0xed, 0xa0, 0x80]),
  Buffer.from("äöü 漢字 😀😀😀\n".repeat(300)),
  Buffer.from(Array.from({ length: 40_000 }, (_, i) => i.toString(36)).join("")), // one line of 150 kB
  Buffer.from([0xe2, 0x82, 0xac, 0xf0, 0x9f]),
]);

/** Appends bytes as intake does: numbered under the workload's lock. */
async function append(placed: Placed, bytes: Buffer, generation = 1): Promise<void> {
  await graph.db.command(async (tx) => {
    const [row] = await tx.sql<{ log_seq: number }>(
      "update compute.workload set log_seq = log_seq + 1 where id = $1 returning log_seq",
      [placed.workloadId],
    );
    const [p] = await tx.sql<{ id: string; log_bytes: bigint }>(
      "select id, log_bytes from compute.placement where workload_id = $1 and generation = $2 for update",
      [placed.workloadId, generation],
    );
    await tx.sql(
      `insert into compute.log_chunk (workload_id, seq, tenant_id, placement_id, stage_id, generation, byte_offset, bytes, created_at)
       values ($1, $2, $3, $4, 'main', $5, $6, $7, $8)`,
      [placed.workloadId, row!.log_seq, TENANT, p!.id, generation, p!.log_bytes, bytes, graph.clock.now()],
    );
    await tx.sql("update compute.placement set log_bytes = log_bytes + $2 where id = $1", [p!.id, bytes.length]);
    tx.wake(topics.log(placed.workloadId));
  });
}

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** Ends a generation's log and, unless told otherwise, the workload with it. */
async function finish(
  placed: Placed,
  log: Buffer,
  { over = true, generation = 1, tailLost = false } = {},
): Promise<void> {
  await graph.db.command(async (tx) => {
    await tx.sql(
      `update compute.placement set state = 'ended', log_complete = true, log_sha256 = $3, log_tail_lost = $4
       where workload_id = $1 and generation = $2`,
      [placed.workloadId, generation, sha256(log), tailLost],
    );
    if (over) await moveWorkload(tx, placed.workloadId, { event: "fail", now: graph.clock.now() });
    tx.wake(topics.log(placed.workloadId));
  });
}

/** Moves a finished log from its chunks into the object store, as the sweep does. */
async function sweep(placed: Placed, log: Buffer): Promise<void> {
  async function* source() {
    yield log;
  }
  await graph.objects.put(source(), { maxBytes: log.length });
  await graph.db.sql("update compute.placement set log_committed_at = $2 where workload_id = $1", [
    placed.workloadId,
    graph.clock.now(),
  ]);
  await graph.db.sql("delete from compute.log_chunk where workload_id = $1", [placed.workloadId]);
}

/** Cuts a log at random places. */
function pieces(log: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set([0, ...cuts.map((c) => c % log.length), log.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, i) => log.subarray(at[i]!, end));
}

const SUBSCRIPTION = `subscription ($id: ID!, $after: String, $stageId: String, $generation: Int) {
  workloadLogs(workloadId: $id, after: $after, stageId: $stageId, generation: $generation) {
    cursor stageId generation offset data text complete end { totalBytes sha256 truncated tailLost }
  }
}`;

async function open(id: string, variables: object = {}): Promise<AsyncIterableIterator<Answer>> {
  const opened = await graph.subscribe(SUBSCRIPTION, { id, ...variables });
  if ("errors" in opened) throw opened.errors![0];
  return opened as AsyncIterableIterator<Answer>;
}

async function readAll(id: string, variables: object = {}): Promise<LogItem[]> {
  const items: LogItem[] = [];
  for await (const answer of await open(id, variables)) items.push(answer.data.workloadLogs);
  return items;
}

const bytesOf = (items: readonly LogItem[]) => Buffer.concat(items.map((i) => Buffer.from(i.data, "base64")));
const textOf = (items: readonly LogItem[]) => items.map((i) => i.text).join("");

describe("a finished log", () => {
  let placed: Placed;
  beforeAll(async () => {
    placed = await insertPlaced(graph.db, graph.clock.now());
    for (const piece of pieces(UGLY, fc.sample(fc.nat(), { numRuns: 60, seed: 5 }))) await append(placed, piece);
    await finish(placed, UGLY);
  });

  test("is read whole, with its hash at the end", async () => {
    const items = await readAll(placed.workloadId);
    expect(bytesOf(items).equals(UGLY)).toBe(true);
    expect(textOf(items)).toBe(UGLY.toString("utf8"));
    expect(items.filter((i) => i.complete)).toHaveLength(1);
    expect(items.at(-1)).toMatchObject({
      complete: true,
      cursor: `main:1:${UGLY.length}`,
      end: { totalBytes: UGLY.length, sha256: sha256(UGLY), truncated: false, tailLost: false },
    });
    let offset = 0;
    for (const item of items) {
      expect(item.offset).toBe(offset);
      offset += Buffer.from(item.data, "base64").length;
      expect(item.cursor).toBe(`main:1:${offset}`);
    }
  });

  test.each(["from its chunks", "from the object store"])(
    "goes on exactly at any byte, a hundred times, %s",
    async (where) => {
      if (where === "from the object store") await sweep(placed, UGLY);
      for (const offset of fc.sample(fc.integer({ min: 0, max: UGLY.length }), { numRuns: 100, seed: 7 })) {
        const stream = await open(placed.workloadId, { after: `main:1:${offset}` });
        const items: LogItem[] = [];
        for await (const answer of stream) {
          items.push(answer.data.workloadLogs);
          // Hangs up in the middle now and then, and comes back with the cursor it saw.
          if (offset % 3 === 0 && items.length === 2) break;
        }
        if (!items.at(-1)!.complete) items.push(...(await readAll(placed.workloadId, { after: items.at(-1)!.cursor })));
        expect(bytesOf(items).equals(UGLY.subarray(offset))).toBe(true);
        expect(items[0]!.offset).toBe(offset);
      }
      expect(openFollowers()).toBe(0);
    },
    60_000,
  );

  test("gives a reader that went on at a cursor the text that one reader would have got", async () => {
    const whole = await readAll(placed.workloadId);
    const parts: string[] = [];
    let after: string | null = null;
    for (;;) {
      const stream = await open(placed.workloadId, { after });
      const { value } = await stream.next();
      await stream.return!();
      const item: LogItem = value.data.workloadLogs;
      parts.push(item.text);
      after = item.cursor;
      if (item.complete) break;
    }
    expect(parts.join("")).toBe(textOf(whole));
  });

  test("refuses a cursor that is none", async () => {
    for (const after of ["x", "main:0:0", "main:1:-1", "main:2:0", `main:1:${UGLY.length + 1}`, "other:1:0"])
      await expect(open(placed.workloadId, { after })).rejects.toMatchObject({
        extensions: { code: "invalid_cursor" },
      });
  });

  test("can be read as one stream of bytes, cut where the caller says", async () => {
    const placement = (await graph.db.row(Placement, "where t.id = $1", [placed.placementId]))!;
    const read = async (max?: number) => {
      const parts: Buffer[] = [];
      for await (const bytes of logBytes(graph.db, graph.objects, placement, max)) parts.push(bytes);
      return Buffer.concat(parts);
    };
    expect((await read()).equals(UGLY)).toBe(true);
    expect((await read(1234)).equals(UGLY.subarray(0, 1234))).toBe(true);
  });
});

test("a live log arrives whole, in order and once, while it is written in haste", async () => {
  const placed = await insertPlaced(graph.db, graph.clock.now());
  const reading = readAll(placed.workloadId);
  const log: Buffer[] = [];
  for (let round = 0; round < 20; round++) {
    const batch = Array.from({ length: 8 }, (_, i) => Buffer.from(`${round}/${i} äö\n`));
    log.push(...batch);
    for (const bytes of batch) await append(placed, bytes);
  }
  await finish(placed, Buffer.concat(log));
  const items = await reading;
  expect(bytesOf(items).toString()).toBe(Buffer.concat(log).toString());
  expect(items.at(-1)!.complete).toBe(true);
});

test("every generation ends with its own hash, and one alone ends when it is over", async () => {
  const placed = await insertPlaced(graph.db, graph.clock.now());
  await append(placed, Buffer.from("first é"));
  await finish(placed, Buffer.from("first é"), { over: false, tailLost: true });
  const alone = await readAll(placed.workloadId, { stageId: "main", generation: 1 });
  expect(alone.at(-1)).toMatchObject({ complete: true, end: { tailLost: true, sha256: null, totalBytes: 8 } });
  await graph.db.sql(
    `insert into compute.placement select (jsonb_populate_record(p, jsonb_build_object('id', p.id || 'b', 'generation', 2,
       'log_bytes', 0, 'log_complete', false, 'log_sha256', null, 'log_tail_lost', false, 'state', 'running'))).*
     from compute.placement p where p.id = $1`,
    [placed.placementId],
  );
  const reading = readAll(placed.workloadId);
  await append(placed, Buffer.from("second"), 2);
  await finish(placed, Buffer.from("second"), { generation: 2 });
  const items = await reading;
  expect(
    items.map((i) => [i.generation, Buffer.from(i.data, "base64").toString(), i.end?.totalBytes ?? null, i.complete]),
  ).toEqual([
    [1, "first é", null, false],
    [1, "", 8, false],
    [2, "second", null, false],
    [2, "", 6, true],
  ]);
  expect(items.at(-1)!.end!.sha256).toBe(sha256(Buffer.from("second")));
});

test("a workload that ended before anything ran has an empty log that ends", async () => {
  const placed = await insertPlaced(graph.db, graph.clock.now());
  await graph.db.sql("delete from compute.placement where id = $1", [placed.placementId]);
  const reading = readAll(placed.workloadId);
  await graph.db.command(async (tx) => {
    await moveWorkload(tx, placed.workloadId, { event: "cancel", now: graph.clock.now() });
    tx.wake(topics.log(placed.workloadId));
  });
  expect(await reading).toMatchObject([{ cursor: "", data: "", complete: true, end: { totalBytes: 0, sha256: null } }]);
});

test("closing a silent stream lets go of it at once", async () => {
  const placed = await insertPlaced(graph.db, graph.clock.now());
  const before = openFollowers();
  const streams = await Promise.all(Array.from({ length: 50 }, () => open(placed.workloadId)));
  const waiting = streams.map((s) => s.next());
  await expect.poll(() => openFollowers()).toBe(before + 50);
  await Promise.all(streams.map((s) => s.return!()));
  expect(await Promise.all(waiting)).toEqual(Array(50).fill({ done: true, value: undefined }));
  expect(openFollowers()).toBe(before);
});

describe("the live log in pages", () => {
  const PAGE = `query ($id: ID!, $after: String) { workload(id: $id) {
    liveLog(after: $after) { chunks { id stageId generation text } nextCursor truncated }
    log { stageId generation source bytes sha256 truncated tailLost } } }`;
  const page = async (id: string, after: string | null = null) => (await graph.run(PAGE, { id, after })).data.workload;

  test("gives all text in chunks of rising numbers, at most 16 a page, and then stands still", async () => {
    const placed = await insertPlaced(graph.db, graph.clock.now());
    const log = UGLY.subarray(0, 3000);
    const parts = pieces(log, fc.sample(fc.nat(), { numRuns: 200, seed: 11 }));
    for (const part of parts) await append(placed, part);
    const chunks: { id: number; text: string }[] = [];
    let after = "";
    for (;;) {
      const { liveLog } = await page(placed.workloadId, after);
      expect(liveLog.chunks.length).toBeLessThanOrEqual(16);
      expect(liveLog.truncated).toBe(false);
      chunks.push(...liveLog.chunks);
      if (liveLog.chunks.length === 0) {
        expect(liveLog.nextCursor).toBe(after);
        break;
      }
      after = liveLog.nextCursor;
    }
    expect(chunks.map((c) => c.id)).toEqual(parts.map((_, i) => i + 1));
    // What the log ends with may still become a character: it is not shown as broken before that is known.
    const held = log.toString("utf8").length - chunks.map((c) => c.text).join("").length;
    expect(log.toString("utf8").startsWith(chunks.map((c) => c.text).join(""))).toBe(true);
    expect(held).toBeLessThanOrEqual(3);
  });

  test("shows no more of a generation than the capture holds, and goes on with the next one", async () => {
    const small = await computeGraph({ logCaptureBytes: 10 });
    try {
      await insertAccount(small.db, small.clock.now());
      const outer = graph;
      graph = small;
      try {
        const placed = await insertPlaced(small.db, small.clock.now());
        for (let i = 0; i < 40; i++) await append(placed, Buffer.from(`${i % 10}`));
        await small.db.sql(
          `insert into compute.placement select (jsonb_populate_record(p, jsonb_build_object('id', p.id || 'b', 'generation', 2, 'log_bytes', 0))).*
           from compute.placement p where p.id = $1`,
          [placed.placementId],
        );
        await append(placed, Buffer.from("the next generation"), 2);
        const { liveLog, log } = await page(placed.workloadId);
        expect(liveLog.chunks.map((c: { text: string }) => c.text).join("")).toBe("0123456789the next g");
        expect(liveLog.truncated).toBe(true);
        expect(log).toMatchObject({ generation: 2, source: "live_snapshot", bytes: 10, sha256: null, truncated: true });
      } finally {
        graph = outer;
      }
    } finally {
      await small.close();
    }
  });

  test("is there for a day after the end, and the committed log for longer", async () => {
    const placed = await insertPlaced(graph.db, graph.clock.now());
    expect(await page(placed.workloadId)).toMatchObject({ liveLog: { chunks: [] }, log: null });
    await append(placed, Buffer.from("hello"));
    await finish(placed, Buffer.from("hello"));
    expect(await page(placed.workloadId)).toMatchObject({
      liveLog: { chunks: [{ id: 1, text: "hello" }] },
      log: { source: "live_snapshot", bytes: 5 },
    });
    await graph.clock.advance(24 * 3_600_000);
    expect(await page(placed.workloadId)).toMatchObject({ liveLog: { chunks: [], nextCursor: "" }, log: null });
    await sweep(placed, Buffer.from("hello"));
    expect(await page(placed.workloadId)).toMatchObject({
      log: { source: "committed", bytes: 5, sha256: sha256(Buffer.from("hello")) },
    });
  });

  test("refuses a cursor that is none", async () => {
    const placed = await insertPlaced(graph.db, graph.clock.now());
    const { errors } = await graph.run(PAGE, { id: placed.workloadId, after: "main:1:0" }, MEMBER);
    expect(errors![0]!.extensions).toMatchObject({ code: "invalid_cursor" });
  });
});
