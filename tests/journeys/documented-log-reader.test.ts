import { execFile } from "node:child_process";
import { expect, test, vi } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { type ScriptedStream, scriptedPlatform } from "../support/scripted-platform.ts";

vi.setConfig({ testTimeout: 60_000 });

const LINES = ["one\n", "two\n", "three\n"];

/** Everything after the cursor, which counts lines here. */
function rest({ variables, next, complete }: ScriptedStream): void {
  for (let n = Number(variables.after ?? 0); n < LINES.length; n++) next(line(n));
  complete();
}

function line(n: number) {
  const data = Buffer.from(LINES[n]!).toString("base64");
  return { workloadLogs: { data, cursor: String(n + 1), complete: n + 1 === LINES.length } };
}

function follow(origin: string): Promise<{ stdout: string; stderr: string; failed: boolean }> {
  const env = { PATH: process.env.PATH, NODUS_BASE_URL: origin, NODUS_API_KEY: "nk_x" };
  const args = [projectFile("docs/examples/follow-log.mjs"), "wl_1"];
  return new Promise((resolve) =>
    execFile(process.execPath, args, { env, timeout: 30_000 }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, failed: error !== null }),
    ),
  );
}

test.each([
  ["breaks", ({ cut }: ScriptedStream) => cut()],
  ["ends early", ({ complete }: ScriptedStream) => complete()],
  ["is closed for a greeting that came too late", ({ close }: ScriptedStream) => close(4408)],
  ["is closed for too many", ({ close }: ScriptedStream) => close(4429)],
  ["ends for a rate", ({ refuse }: ScriptedStream) => refuse("rate_limited", 429)],
  ["ends for a time-out", ({ refuse }: ScriptedStream) => refuse("request_timeout", 408)],
  ["ends for a part that is away", ({ refuse }: ScriptedStream) => refuse("subgraph_unavailable", 503)],
])("a stream that %s is gone on with after a pause, and no byte is printed twice", async (_, end) => {
  const openedAtMs: number[] = [];
  const origin = await scriptedPlatform({
    answer: () => ({}),
    stream: (stream) => {
      openedAtMs.push(performance.now());
      if (stream.time > 1) return rest(stream);
      stream.next(line(0));
      end(stream);
    },
  });
  expect(await follow(origin)).toEqual({ stdout: LINES.join(""), stderr: "", failed: false });
  expect(openedAtMs).toHaveLength(2);
  expect(openedAtMs[1]! - openedAtMs[0]!).toBeGreaterThan(900); // the pause itself: a platform that stops is not stormed
});

test.each([
  ["insufficient_scope", 403],
  ["internal_error", 500],
])("a stream that is refused with %s ends it in a line", async (code, status) => {
  const origin = await scriptedPlatform({ answer: () => ({}), stream: ({ refuse }) => refuse(code, status) });
  expect(await follow(origin)).toEqual({ stdout: "", stderr: `${code}: It said ${code}.\n`, failed: true });
});
