import { describe, expect, test } from "vitest";
import { type Checks, liveness, readiness } from "./health.ts";

const fine = async () => null;

test("a process that answers is alive, whatever its parts do", () => {
  expect(liveness()).toEqual({ status: 200, body: { status: "ok" } });
});

describe("readiness", () => {
  test("is 200 when every part works, each by name", async () => {
    const answer = await readiness({ database: fine, queue: fine }, "serving");
    expect(answer).toEqual({
      status: 200,
      body: {
        status: "ready",
        checks: { database: { state: "ok", message: "ok" }, queue: { state: "ok", message: "ok" } },
      },
    });
  });

  test("is 503 with the part and its reason when one does not", async () => {
    const checks: Checks = { database: fine, supplier: async () => "no supplier has answered yet" };
    const answer = await readiness(checks, "serving");
    expect(answer.status).toBe(503);
    expect(answer.body.status).toBe("not_ready");
    expect(answer.body.checks.database).toEqual({ state: "ok", message: "ok" });
    expect(answer.body.checks.supplier).toEqual({ state: "failing", message: "no supplier has answered yet" });
  });

  test("does not wait for a part that does not answer, and tells it to give up", async () => {
    let told: AbortSignal | undefined;
    const silent = (signal: AbortSignal) => {
      told = signal;
      return new Promise<string | null>(() => {});
    };
    const answer = await readiness({ queue: silent, database: fine }, "serving", 30);
    expect(answer.body.checks.queue).toEqual({ state: "failing", message: "no answer within 30 ms" });
    expect(told?.aborted).toBe(true);
  });

  test("tells a stranger the error's code, and neither address nor password", async () => {
    const broken = async () => {
      throw Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:5432 as nodus:hush"), { code: "ECONNREFUSED" });
    };
    const answer = await readiness({ database: broken }, "serving");
    expect(answer.body.checks.database).toEqual({ state: "failing", message: "cannot be reached (ECONNREFUSED)" });
  });

  test.each(["starting", "stopping"] as const)(
    "is 503 while the process is %s although its parts work",
    async (phase) => {
      const answer = await readiness({ database: fine }, phase);
      expect(answer.status).toBe(503);
      expect(answer.body.checks.process?.message).toBe(`the process is ${phase}`);
    },
  );
});
