import { expect, test } from "vitest";
import type { IsolationReport } from "../infra/runner/protocol.ts";
import { readSettings } from "../infra/telemetry/environment.ts";
import { banner, startLine } from "./banner.ts";

const ISOLATION: IsolationReport = {
  level: "bubblewrap",
  limits: "rlimits",
  ownUid: false,
  seccomp: true,
  detail: "",
};

function told(over: Partial<Parameters<typeof banner>[0]> = {}): string {
  const settings = readSettings({});
  const origin = "http://127.0.0.1:4000";
  const now = new Date(1_700_000_000_000);
  return banner({ settings, origin, now, newKey: null, gpuLacks: false, isolation: ISOLATION, unknown: [], ...over });
}

test("later starts print examples with other idempotency keys, which do not replay an earlier workload", () => {
  const keys = [1, 2].map((ms) => /idempotencyKey: "(.+)"/.exec(told({ now: new Date(ms) }))?.[1]);
  expect(new Set(keys).size).toBe(2);
  expect(told()).toContain('"Idempotency-Key: hello-$(date +%s)"');
});

test("a start prints what other commands must be told to find the platform, where it is not what they expect", () => {
  expect(told()).not.toContain("export");
  const elsewhere = told({
    settings: readSettings({ NODUS_DATA_DIR: "/srv/my data" }),
    origin: "http://127.0.0.1:4100",
  });
  expect(elsewhere).toContain(
    "  Commands   export NODUS_DATA_DIR='/srv/my data' NODUS_BASE_URL=http://127.0.0.1:4100\n",
  );
  const managed = readSettings({ NODUS_DATA_DIR: "/srv/nodus", DATABASE_URL: "postgres://u:p@db/nodus" });
  expect(told({ settings: managed })).not.toContain("export"); // the database is told by another variable, with a password
});

test("a start says that workloads without a GPU wait where nothing else than a GPU will do", () => {
  const line = /No GPU +Workloads that name no GPU wait .*NODUS_CPU_FALLBACK=1.*--cpu/;
  expect(told({ gpuLacks: true })).toMatch(line);
  expect(told()).not.toMatch(line);
  const facts = { name: "worker", address: "http://127.0.0.1:4030", newKey: null, unknown: [] };
  expect(startLine({ ...facts, gpuLacks: true })).toMatch(line);
  expect(startLine({ ...facts, gpuLacks: false })).toBe("nodus worker listens on http://127.0.0.1:4030\n");
});
