import Fastify from "fastify";
import type { Actor } from "../../infra/kernel/actor.ts";
import { readSettings } from "../../infra/telemetry/environment.ts";
import { admissionRoute } from "./baseline/bare-admission.ts";
import { BareDatabase } from "./baseline/bare-database.ts";
import { bareSubscriptions } from "./baseline/bare-subscriptions.ts";
import { Callers } from "./baseline/caller.ts";
import { joinedRoutes } from "./baseline/joined-routes.ts";
import { workloadRoute } from "./baseline/workload-route.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who asks, on the hand-written routes. */
    caller: Actor | null;
  }
}

/** Hand-written routes that do the same work as the platform's, without a graph. */
async function serve(): Promise<void> {
  const end = () => process.exit(0);
  process.once("SIGTERM", end).once("SIGINT", end).once("disconnect", end);
  const url = readSettings().databaseUrl!;
  const db = new BareDatabase(url);
  const app = Fastify();
  await bareSubscriptions(app, db, url);
  await app.register(async (scope) => {
    const callers = new Callers(db);
    scope.decorateRequest("caller", null);
    scope.addHook("onRequest", async (request, reply) => {
      request.caller = await callers.callerOf(request.headers.authorization);
      if (!request.caller) await reply.code(401).send({ error: "unauthorized" });
    });
    joinedRoutes(scope, db);
    workloadRoute(scope, db);
    admissionRoute(scope, db);
  });
  process.send!({ origin: await app.listen({ host: "127.0.0.1", port: 0 }) });
}

await serve();
