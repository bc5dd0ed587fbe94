import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { beginCommand } from "../tests/support/command-line.ts";
import { type ScriptedStream, scriptedPlatform } from "../tests/support/scripted-platform.ts";
import { connect } from "./client.ts";
import { showLogs } from "./logs.ts";
import { GIVE_UP_AFTER_MS, Patience } from "./patience.ts";

vi.setConfig({ testTimeout: 120_000 });

const FIRST = "a first line\n";
const SECOND = "and a second one\n";
const BYTES = FIRST.length + SECOND.length;

/** The workload as the platform knows it: of one stage, with one generation. */
function workload(status: string, logBytes: number) {
  const logComplete = status === "completed";
  const stages = [{ stageId: "main", placements: [{ generation: 1, logBytes, logComplete }] }];
  return { workload: { status, reason: null, message: null, exitCode: null, waitingReason: null, stages } };
}

/** A piece of its log from a byte on. */
function piece(offset: number, text: string) {
  const cursor = `main:1:${offset + text.length}`;
  const data = Buffer.from(text).toString("base64");
  return {
    workloadLogs: { stageId: "main", generation: 1, offset, data, cursor, complete: false, end: null },
  };
}

function theEnd() {
  const { workloadLogs } = piece(BYTES, "");
  return { workloadLogs: { ...workloadLogs, complete: true, end: { truncated: false, tailLost: false } } };
}

/** What is left of the log after the cursor that was asked for, and its end. */
function rest({ variables, next }: ScriptedStream) {
  const known = Number(/\d+$/.exec(String(variables.after ?? "0"))![0]);
  next(piece(known, (FIRST + SECOND).slice(known)));
  next(theEnd());
}

async function run(args: readonly string[], origin: string) {
  return (await beginCommand(args, { NODUS_BASE_URL: origin, NODUS_API_KEY: "nk_x" })).ended;
}

test("a log that is slow in coming is shown whole", async () => {
  const origin = await scriptedPlatform({
    answer: () => workload("completed", BYTES),
    stream: async (stream) => {
      await sleep(1_500); // long for a way, and short for a person at a terminal
      rest(stream);
    },
  });
  expect(await run(["logs", "wl_1"], origin)).toEqual({ code: 0, stdout: FIRST + SECOND, stderr: "" });
});

test.each([
  ["ends early", ({ complete }: ScriptedStream) => complete()],
  ["breaks off", ({ cut }: ScriptedStream) => cut()],
  ["is closed for too many", ({ close }: ScriptedStream) => close(4429)],
])("a log whose stream %s is gone on with at the same byte", async (_, end) => {
  const origin = await scriptedPlatform({
    answer: () => workload("completed", BYTES),
    stream: (stream) => {
      if (stream.time > 1) return rest(stream);
      stream.next(piece(0, FIRST));
      end(stream);
    },
  });
  const { code, stdout, stderr } = await run(["logs", "wl_1"], origin);
  expect([code, stdout]).toEqual([0, FIRST + SECOND]);
  expect(stderr).toContain("Trying again");
});

test("bytes that come once more are not shown again", async () => {
  const origin = await scriptedPlatform({
    answer: () => workload("completed", BYTES),
    stream: (stream) => {
      stream.next(piece(0, FIRST));
      stream.next(piece(FIRST.length - 5, FIRST.slice(-5) + SECOND));
      stream.next(theEnd());
    },
  });
  expect((await run(["logs", "wl_1"], origin)).stdout).toBe(FIRST + SECOND);
});

test("of a run that goes on, what it had printed is shown; of one that printed nothing, it is said", async () => {
  const running = await scriptedPlatform({
    answer: () => workload("running", BYTES),
    stream: ({ next }) => next(piece(0, FIRST + SECOND)), // and nothing more for ever
  });
  expect(await run(["logs", "wl_1"], running)).toEqual({ code: 0, stdout: FIRST + SECOND, stderr: "" });
  const begun = await scriptedPlatform({ answer: () => workload("running", 0) });
  const stderr = "It has printed nothing so far: it is running.\n";
  expect(await run(["logs", "wl_1"], begun)).toEqual({ code: 0, stdout: "", stderr });
});

test("of stages that run side by side, what a stream can tell is waited for and no more", async () => {
  const stage = (stageId: string, logBytes: number, logComplete: boolean) => ({
    stageId,
    placements: [{ generation: 1, logBytes, logComplete }],
  });
  const stages = [stage("main", BYTES, false), stage("beside", 99, false)];
  const origin = await scriptedPlatform({
    answer: () => ({ workload: { status: "running", stages } }),
    stream: ({ next }) => next(piece(0, FIRST + SECOND)),
  });
  expect(await run(["logs", "wl_1"], origin)).toEqual({ code: 0, stdout: FIRST + SECOND, stderr: "" });
});

test("a log that does not come is no empty log", async () => {
  const client = connect(
    await scriptedPlatform({ answer: () => workload("completed", BYTES), stream: () => {} }),
    "nk_x",
  );
  onTestFinished(() => client.close());
  let now = 0;
  const wholeWait = async () => {
    now += GIVE_UP_AFTER_MS;
  };
  const patience = new Patience({ tell: () => {}, nowMs: () => now, sleep: wholeWait });
  await expect(showLogs(client, "wl_1", patience, 50)).rejects.toThrow(
    /^Nothing of the log came for 0\.05 seconds\. It has been away for 5 minutes/,
  );
});

test.each([
  ["completed", 0],
  ["failed", 1],
] as const)("the run decides the exit code, %s: %d, and not what else could not be told", async (status, code) => {
  const origin = await scriptedPlatform({
    answer: () => workload(status, BYTES),
    stream: (stream) => {
      if (stream.query.includes("workloadEvents")) return stream.refuse("insufficient_scope", 403);
      setTimeout(() => rest(stream), 200); // the refusal first
    },
  });
  const ended = await run(["logs", "-f", "wl_1"], origin);
  expect([ended.code, ended.stdout]).toEqual([code, FIRST + SECOND]);
  expect(ended.stderr).toBe(`What it waits for is not told any more. It said insufficient_scope.\n${status}\n`);
});
