import Fastify, { type FastifyBaseLogger, LogController } from "fastify";
import { expect, it, vi } from "vitest";
import { createLogger } from "../infra/telemetry/logger.ts";
import { lazyRequestLogger } from "./request-logger.ts";

/** One request to a server whose requests have such loggers: the lines it wrote, and how many loggers were made for it. */
async function ask(handle: (log: FastifyBaseLogger) => void) {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createLogger({ level: "info", role: "test", destination: { write } });
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: lazyRequestLogger,
    genReqId: () => "request-1",
  });
  app.get("/", async (request) => {
    handle(request.log);
    return "done";
  });
  await app.ready();
  const child = vi.spyOn(log, "child");
  expect((await app.inject("/")).body).toBe("done");
  await app.close();
  return { lines, made: child.mock.calls.filter(([bindings]) => "reqId" in bindings).length };
}

it("makes no logger for a request that writes no line", async () => {
  expect(await ask(() => {})).toEqual({ lines: [], made: 0 });
});

it("makes one logger for all lines of a request, and each line names the request", async () => {
  const { lines, made } = await ask((log) => {
    log.warn({ part: 1, apiKey: "of nobody" }, "first");
    log.error("second");
    log.debug("below the level");
    log.child({ part: 2 }).info("third");
  });
  expect(made).toBe(1);
  expect(lines).toEqual([
    expect.objectContaining({ level: "warn", reqId: "request-1", part: 1, msg: "first", apiKey: "[redacted]" }),
    expect.objectContaining({ level: "error", reqId: "request-1", msg: "second" }),
    expect.objectContaining({ level: "info", reqId: "request-1", part: 2, msg: "third" }),
  ]);
});
