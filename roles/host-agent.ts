import { setTimeout as sleep } from "node:timers/promises";
import { createProcessServer } from "../gateway/process-server.ts";
import type { HostClient } from "../infra/runner/host/client.ts";
import { hostFolder } from "../infra/runner/host/host-folder.ts";
import { attachToHostAgent, endHostAgent } from "../infra/runner/host/launcher.ts";
import { Drain, drainOnSignals } from "../infra/telemetry/drain.ts";
import { type Settings, SettingsError, unknownVariables } from "../infra/telemetry/environment.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { Metrics } from "../infra/telemetry/metrics.ts";
import { startLine } from "./banner.ts";
import { buildVersion } from "./build-version.ts";
import { type Phase, serveHealth } from "./serve-health.ts";

/** How often a lost agent is looked for. */
const LOOK_MS = 500;
/** An agent ends its guests before it goes. */
const GOODBYE_MS = 25_000;

/**
 * Keeps this machine's host agent running: starts it, starts it again when it dies, ends it with its guests when told to
 * stop. The agent has a process of its own with a chosen environment, so that no setting of the platform reaches it, and
 * it lives on when this process is killed; the next one finds it.
 */
export async function superviseHostAgent(settings: Settings): Promise<void> {
  if (settings.intakeUrl === null)
    throw new SettingsError(["NODUS_INTAKE_URL must be set: a host agent has to know where intake is."]);
  const logger = createLogger({ level: settings.logLevel, role: "host-agent" });
  const drain = new Drain(logger);
  drainOnSignals(drain, logger, Math.max(settings.drainSeconds * 1000, GOODBYE_MS));
  const launcher = {
    folder: hostFolder(settings.dataDir),
    allowUnisolated: settings.allowUnisolated,
    version: buildVersion(),
    idleExitMs: 0,
  };
  let agent: { client: HostClient; pid: number; level: string } | null = null;
  const attach = async () => {
    const client = await attachToHostAgent(launcher);
    const hello = await client.ask({ op: "hello", intakeUrl: `${settings.intakeUrl}/runner/v1` });
    agent = { client, pid: hello.pid, level: hello.isolation.level };
    logger.info({ agentPid: hello.pid, isolation: hello.isolation, folder: launcher.folder }, "the host agent serves");
  };
  const app = await createProcessServer({ log: logger });
  const phase: Phase = { now: "starting" };
  const checks = {
    agent: async () => (agent && !agent.client.closed ? null : "the host agent does not answer"),
    isolation: async () =>
      agent?.level !== "none" || settings.allowUnisolated ? null : "this machine can't isolate guests",
  };
  serveHealth(app, { metrics: new Metrics("host-agent") }, checks, phase);
  const address = await app.listen({ host: settings.host, port: settings.port });
  drain.onClose("HTTP server", () => app.close());
  await attach().catch(async (error: unknown) => {
    await drain.close(); // or the server would keep the process
    throw error;
  });
  const stopping = new AbortController();
  const dismiss = async () => {
    if (!agent!.client.closed) await endHostAgent(agent!.client, agent!.pid);
  };
  drain.onClose("host agent", dismiss, GOODBYE_MS);
  const watched = keepAttached(
    () => agent!.client,
    attach,
    stopping.signal,
    (err) => logger.error({ err }, "the host agent could not be started again yet"),
  );
  drain.onClose("watch of the host agent", async () => {
    phase.now = "stopping";
    stopping.abort();
    await watched;
  });
  phase.now = "serving";
  process.stdout.write(
    startLine({ name: "host-agent", address, newKey: null, gpuLacks: false, unknown: unknownVariables() }),
  );
}

async function keepAttached(
  current: () => HostClient,
  attach: () => Promise<void>,
  stop: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  while (!stop.aborted) {
    await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => {}); // told to stop
    if (!stop.aborted && current().closed) await attach().catch(onError);
  }
}
