import { Drain, drainOnSignals } from "../infra/telemetry/drain.ts";
import { type Settings, unknownVariables } from "../infra/telemetry/environment.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { openAccount } from "../subgraphs/compute/account/account.commands.ts";
import { bootstrap } from "../subgraphs/compute/team/bootstrap.ts";
import { banner, startLine } from "./banner.ts";
import { checksOf } from "./checks.ts";
import { computeSettings } from "./compute-settings.ts";
import { openParts, type Parts } from "./parts.ts";
import type { ProcessPlan } from "./process-plan.ts";
import { createFace } from "./serve.ts";
import type { Phase } from "./serve-health.ts";
import { computeServices } from "./services.ts";
import type { Work } from "./work.ts";

/** Starts what the plan says in this process, and resolves once it serves. What it opened is closed again when it cannot. */
export async function startProcess(settings: Settings, plan: ProcessPlan): Promise<void> {
  const logger = createLogger({ level: settings.logLevel, role: plan.name });
  const drain = new Drain(logger);
  drainOnSignals(drain, logger, settings.drainSeconds * 1000);
  try {
    await start(plan, await openParts(settings, plan, logger, drain));
  } catch (error) {
    await drain.close();
    throw error;
  }
}

async function start(plan: ProcessPlan, parts: Parts): Promise<void> {
  const { settings } = parts;
  // The settings need the port that was really taken, so the face listens before work starts.
  const compute = computeServices(parts, `http://${hostOf(settings)}:${settings.port}`);
  let work: Work | null = null;
  const checks = checksOf(parts, plan, () => work);
  const { app, phase } = await createFace(parts, plan, compute, checks);
  const address = await app.listen({ host: settings.host, port: settings.port });
  parts.drain.onClose("HTTP server", () => app.close());
  Object.assign(compute.settings, computeSettings(settings, address));
  if (plan.worker) work = await (await import("./work.ts")).startWork(parts, compute.settings, compute.market);
  parts.drain.onClose("readiness", () => {
    phase.now = "stopping";
  });
  if (plan.alone) await announcePlatform(parts, work!, phase, compute.settings);
  else await announceProcess(plan, parts, work, phase, address, compute.settings.concurrentRunsLimit);
}

async function announcePlatform(
  parts: Parts,
  work: Work,
  phase: Phase,
  { publicUrl, concurrentRunsLimit }: { publicUrl: string; concurrentRunsLimit: number },
): Promise<void> {
  const isolation = work.local
    ? await work.local.isolation().catch((error: Error) => error)
    : new Error("the local machine offers no capacity (NODUS_LOCAL_CAPACITY is off)");
  const lacks = await gpuLacks(parts.settings, work);
  // Last of all: the key's text is shown once, so a start that fails must not have made it.
  const newKey = await openFirstTeam(parts, concurrentRunsLimit);
  phase.now = "serving";
  const { settings } = parts;
  const facts = { newKey, isolation, gpuLacks: lacks, now: parts.clock.now(), unknown: unknownVariables() };
  process.stdout.write(banner({ settings, origin: publicUrl, ...facts }));
}

/** One of several processes tells its address; a gateway sees to the first team, since it is what clients meet first. */
async function announceProcess(
  plan: ProcessPlan,
  parts: Parts,
  work: Work | null,
  phase: Phase,
  address: string,
  concurrentRunsLimit: number,
): Promise<void> {
  const lacks = await gpuLacks(parts.settings, work);
  const newKey = plan.gateway ? await openFirstTeam(parts, concurrentRunsLimit) : null;
  phase.now = "serving";
  const facts = { newKey, gpuLacks: lacks, unknown: unknownVariables() };
  process.stdout.write(startLine({ name: plan.name, address, ...facts }));
}

/** Whether this process offers its machine, which has no GPU, and a CPU may not stand in for one. */
async function gpuLacks({ cpuFallback, localAccelerators }: Settings, work: Work | null): Promise<boolean> {
  if (cpuFallback || !work?.local || localAccelerators.length > 0) return false;
  return (await work.local.gpus()).status !== "present";
}

/** Sees that the first team and its account are there. Resolves to the first key's text when this call made it. */
async function openFirstTeam({ db, settings, clock }: Parts, concurrentRunsLimit: number): Promise<string | null> {
  const first = await bootstrap(db, { key: settings.bootstrapKey ?? undefined, now: clock.now() });
  await db.command((tx) =>
    openAccount(
      tx,
      {
        teamId: first.team.id,
        creditMicros: settings.newTeamCreditMicros,
        paymentMethod: settings.firstTeamHasPaymentMethod,
        concurrentRunsLimit,
      },
      clock.now(),
    ),
  );
  return first.key;
}

function hostOf(settings: Settings): string {
  return settings.host === "0.0.0.0" || settings.host === "::" ? "127.0.0.1" : settings.host;
}
