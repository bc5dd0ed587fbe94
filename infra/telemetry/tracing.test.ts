import { expect, test } from "vitest";
import { inSpan, traceId } from "./tracing.ts";

test("without a tracing provider the work runs, its answer comes back, and there is no trace id", async () => {
  expect(await inSpan("nodus.test", { "nodus.role": "test" }, async () => [7, traceId()])).toEqual([7, null]);
});

test("what is thrown inside a span comes out as it was", async () => {
  const fault = new Error("broken");
  const failing = inSpan("nodus.test", {}, async () => {
    throw fault;
  });
  await expect(failing).rejects.toBe(fault);
});
