import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HostFrame, RunnerRecord } from "../protocol.ts";
import { until } from "../testing/host-fixture.ts";
import { Sender } from "./sender.ts";
import { Spool } from "./spool.ts";

describe("a spool and its sender", () => {
  let folder: string;
  const failures: Error[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "spool-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const path = () => join(folder, "spool.ndjson");
  const open = (onDurable: () => void = () => {}, committedLogBytes = 1e9) =>
    Spool.open(path(), {
      committedLogBytes,
      now: () => new Date("2026-01-01T00:00:00Z"),
      onFailure: (error: Error) => failures.push(error),
      onDurable,
    });
  const onDisk = () =>
    readFileSync(path(), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as RunnerRecord);

  it("numbers records without gap and puts many appends into few lines of log", async () => {
    const { spool } = await open();
    for (let i = 0; i < 1_000; i++) spool.appendLog(Buffer.from(`line ${i}\n`));
    spool.append({ type: "unit", id: "u", ms: 1 });
    spool.appendEnd(0);
    await spool.flushed();
    const records = onDisk();
    expect(records.map((record) => record.seq)).toEqual(records.map((_, i) => i + 1));
    expect(records.filter((record) => record.type === "log").length).toBeLessThan(5);
    await spool.close();
  });

  it("goes on with number, offset and digest after it was opened again, wherever a crash cut it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 50 }), { minLength: 1, maxLength: 8 }),
        fc.nat(100),
        fc.uint8Array({ maxLength: 20 }),
        async (writes, cut, more) => {
          rmSync(path(), { force: true });
          const first = (await open()).spool;
          for (const write of writes) {
            first.appendLog(Buffer.from(write));
            await first.flushed();
          }
          await first.close();
          const size = readFileSync(path()).length;
          truncateSync(path(), Math.max(0, size - cut));
          const { spool, state } = await open();
          const kept = onDisk();
          expect(state.seq).toBe(kept.length);
          spool.appendLog(Buffer.from(more));
          spool.appendEnd(0);
          await spool.flushed();
          await spool.close();
          const records = onDisk();
          const log = Buffer.concat(
            records.flatMap((record) => (record.type === "log" ? [Buffer.from(record.data, "base64")] : [])),
          );
          expect(records.at(-1)).toMatchObject({
            type: "end",
            seq: records.length,
            logBytes: log.length,
            logSha256: createHash("sha256").update(log).digest("hex"),
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  it("does not read past a line that is no record or is out of order", async () => {
    const { spool } = await open();
    spool.append({ type: "unit", id: "a", ms: 1 });
    await spool.close();
    appendFileSync(path(), '{"seq":7,"at":"2026-01-01T00:00:00.000Z","type":"unit","id":"b","ms":1}\n');
    const { spool: again, state } = await open();
    expect(state.seq).toBe(1);
    await again.close();
    expect(onDisk()).toHaveLength(1);
  });

  it.runIf(process.getuid?.() === 0)("tells that the disk is full, once, and keeps nothing half", async () => {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]);
    try {
      const { spool } = await open();
      spool.append({ type: "unit", id: "kept", ms: 1 });
      await spool.flushed();
      spool.appendLog(Buffer.alloc(100_000));
      await expect(spool.flushed()).rejects.toThrow("ENOSPC");
      spool.append({ type: "unit", id: "after", ms: 1 });
      expect(failures.splice(0).map((error) => (error as NodeJS.ErrnoException).code)).toEqual(["ENOSPC"]);
      expect(spool.durable.seq).toBe(1);
      await spool.close();
      const again = await open();
      expect(again.state.seq).toBe(1);
      await again.spool.close();
    } finally {
      execFileSync("umount", [folder]);
    }
  });

  it("sends every record once and in order, over breaks and lost acknowledgements", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 40 }), async (steps) => {
        rmSync(path(), { force: true });
        const received: number[] = [];
        let up = false;
        const pump = { sender: null as Sender | null };
        const { spool } = await open(() => pump.sender?.pump());
        const sender = new Sender(spool, "ord", "ses", {
          send: async (frame) => {
            if (!up) return false;
            const { records } = JSON.parse(frame.toString()) as Extract<HostFrame, { type: "records" }>;
            for (const { seq } of records) {
              expect(seq).toBeLessThanOrEqual(received.length + 1);
              if (seq === received.length + 1) received.push(seq);
            }
            return true;
          },
          failed: (error) => expect.unreachable(error.message),
        });
        pump.sender = sender;
        const connect = async () => {
          up = true;
          await sender.resume(received.length);
        };
        for (const step of steps) {
          if (step === 0) {
            up = false;
            sender.pause();
          } else if (step === 1) await connect();
          else if (step === 2) sender.acknowledge(received.length);
          else if (step === 3) await spool.flushed();
          else spool.appendLog(Buffer.alloc(step * 1000, 97));
        }
        await spool.flushed();
        await connect();
        await until(() => received.length >= spool.durable.seq, "all records arrive");
        expect(received).toEqual(Array.from({ length: spool.durable.seq }, (_, i) => i + 1));
        sender.acknowledge(received.length);
        expect(sender.unacknowledged).toBe(0);
        sender.pause();
        await spool.close();
      }),
      { numRuns: 60 },
    );
  });

  it("sends no more than a window ahead of what is acknowledged", async () => {
    const pump = { sender: null as Sender | null };
    const { spool } = await open(() => pump.sender?.pump());
    let bytes = 0;
    const sender = new Sender(spool, "ord", "ses", {
      send: async (frame) => {
        bytes += frame.length;
        return true;
      },
      failed: (error) => expect.unreachable(error.message),
    });
    pump.sender = sender;
    await sender.resume(0);
    for (let i = 0; i < 20; i++) {
      spool.appendLog(Buffer.alloc(1_000_000, 98));
      await spool.flushed();
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(bytes).toBeGreaterThan(4_000_000);
    expect(bytes).toBeLessThan(5_300_000); // the window and a frame
    await spool.close();
  });

  it("sends what has piled up in frames of many chunks, so that they share a transaction", async () => {
    const { spool } = await open();
    for (let i = 0; i < 2_000; i++) spool.appendLog(Buffer.alloc(1_000, 98));
    await spool.flushed();
    const frames: RunnerRecord[][] = [];
    const sender = new Sender(spool, "ord", "ses", {
      send: async (frame) => {
        frames.push((JSON.parse(frame.toString()) as Extract<HostFrame, { type: "records" }>).records);
        return true;
      },
      failed: (error) => expect.unreachable(error.message),
    });
    await sender.resume(0);
    await until(() => frames.flat().length === spool.durable.seq, "all records arrive");
    expect(spool.durable.seq).toBe(31);
    expect(frames.map((records) => records.length)).toEqual([11, 11, 9]);
    await spool.close();
  });
});
