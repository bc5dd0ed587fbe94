import { sqlState } from "../infra/db/database.ts";
import { laterThan, migrations } from "../infra/db/migrate.ts";
import type { Check, Checks } from "../infra/telemetry/health.ts";
import type { Parts } from "./parts.ts";
import type { ProcessPlan } from "./process-plan.ts";
import type { Work } from "./work.ts";

/** What `/readyz` asks of a process: what its roles need, and nothing else. */
export function checksOf(parts: Parts, plan: ProcessPlan, work: () => Work | null): Checks {
  const known = migrations();
  return {
    database: async () => {
      try {
        const later = await laterThan((text) => parts.db.sql<{ name: string }>(text), known);
        return later.length === 0
          ? null
          : `a later release changed the database (${later.join(", ")}): replace this process`;
      } catch (error) {
        return `the database does not answer (${sqlState(error) ?? "no connection"})`;
      }
    },
    objects: async () => {
      await Promise.all([parts.objects.assets.ping(), parts.objects.results.ping()]);
      return null;
    },
    ...(plan.remoteSubgraphs.size > 0 ? { subgraphs: anyAnswers([...plan.remoteSubgraphs.values()]) } : {}),
    ...(plan.worker ? workChecks(parts, work) : {}),
  };
}

/** A gateway without some of its subgraphs still serves the others' data; without any it serves nobody. */
function anyAnswers(urls: readonly string[]): Check {
  return async (signal) => {
    const answers = urls.map(async (url) => {
      const { ok } = await fetch(new URL("/healthz", url), { signal });
      if (!ok) throw new Error("unhealthy");
    });
    return Promise.any(answers).then(
      () => null,
      () => "no subgraph answers",
    );
  };
}

function workChecks(parts: Parts, work: () => Work | null): Checks {
  return {
    queue: async () => {
      const started = work();
      if (!started) return "not started";
      await started.pingQueue();
      return null;
    },
    supplier: async () => {
      const started = work();
      if (!started) return "not started";
      if ((await started.suppliers()).length === 0) return "no supplier of capacity has answered lately";
      if (!started.local) return null;
      const { level, detail } = await started.local.isolation();
      if (level !== "none" || parts.settings.allowUnisolated) return null;
      return `the local machine offers no capacity, since it can't isolate guests: ${detail}`;
    },
  };
}
