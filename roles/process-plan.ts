import { subgraphPath } from "../infra/graphql/subgraph-wire.ts";
import { type Settings, SettingsError } from "../infra/telemetry/environment.ts";
import { SUBGRAPHS, type SubgraphName } from "../infra/telemetry/setting-table.ts";

/** What one process of a deployment does. */
export interface ProcessPlan {
  /** What logs and metrics call the process: `platform`, or its roles. */
  readonly name: string;
  /** Everything runs in this process, and nothing may run beside it. */
  readonly alone: boolean;
  /** Clients are served: the graph and REST. */
  readonly gateway: boolean;
  /** Jobs, the relay and the reconcilers run here. */
  readonly worker: boolean;
  /** Hosts are served: the runner protocol. */
  readonly intake: boolean;
  /** The subgraphs that run here. */
  readonly subgraphs: readonly SubgraphName[];
  /** Addresses of the subgraphs that this process's gateway asks elsewhere; empty without a gateway. */
  readonly remoteSubgraphs: ReadonlyMap<SubgraphName, string>;
}

/** Reads from the settings what the process does. Throws `SettingsError` with everything that does not go together. */
export function planProcess(settings: Settings): ProcessPlan {
  const { roles } = settings;
  const alone = roles.includes("all");
  const has = (role: (typeof roles)[number]) => alone || roles.includes(role);
  const subgraphs = SUBGRAPHS.filter(has);
  const elsewhere = new Map(settings.subgraphUrls);
  const plan: ProcessPlan = {
    name: alone ? "platform" : roles.join("+"),
    alone,
    gateway: has("gateway"),
    worker: has("worker"),
    intake: has("intake"),
    subgraphs,
    remoteSubgraphs: has("gateway")
      ? new Map([...elsewhere].filter(([name]) => !subgraphs.includes(name)))
      : new Map<SubgraphName, string>(),
  };
  const problems = alone ? aloneProblems(settings) : memberProblems(settings, plan);
  if (problems.length > 0) throw new SettingsError(problems);
  return plan;
}

function aloneProblems(settings: Settings): string[] {
  const problems: string[] = [];
  if (settings.subgraphUrls.length > 0)
    problems.push("NODUS_SUBGRAPH_URLS must be unset where NODUS_ROLES is all: every subgraph runs in this process.");
  return problems;
}

function memberProblems(settings: Settings, plan: ProcessPlan): string[] {
  const problems: string[] = [];
  if (settings.roles.includes("host-agent"))
    problems.push("NODUS_ROLES must name host-agent alone: a host agent outlives the processes that use it.");
  const lacking = SUBGRAPHS.filter((name) => !plan.subgraphs.includes(name) && !plan.remoteSubgraphs.has(name));
  if (plan.gateway && lacking.length > 0)
    problems.push(
      `NODUS_SUBGRAPH_URLS must say where ${lacking.join(", ")} can be found: a gateway asks every subgraph.`,
    );
  for (const [name, url] of plan.remoteSubgraphs)
    if (url.endsWith(subgraphPath(name)))
      problems.push(
        `NODUS_SUBGRAPH_URLS must give the address of ${name}'s process without ${subgraphPath(name)}: gateways add that.`,
      );
  for (const [name, url] of plan.remoteSubgraphs)
    if (isThisProcess(url, settings))
      problems.push(`NODUS_SUBGRAPH_URLS must not send the gateway to itself: ${name} does not run in this process.`);
  if (plan.worker && !plan.intake && settings.localCapacity !== "off" && settings.intakeUrl === null)
    problems.push("NODUS_INTAKE_URL must be set: a worker tells host agents where intake is, and it runs elsewhere.");
  if (!plan.gateway && settings.publicUrl === null)
    problems.push("NODUS_PUBLIC_URL must be set: this process can't know where clients reach the gateways.");
  return problems;
}

/** Names of this machine for itself, and addresses to listen on that these lead to. */
const ITSELF = /^(localhost|127\.[0-9.]+|\[?::1\]?)$/;
const EVERY_NETWORK = ["0.0.0.0", "::", "[::]"];

/** Whether an address leads to what this process listens on, as far as it can be told without asking. */
function isThisProcess(address: string, { host, port }: Pick<Settings, "host" | "port">): boolean {
  const url = new URL(address);
  const askedPort = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return askedPort === port && ITSELF.test(url.hostname) && (ITSELF.test(host) || EVERY_NETWORK.includes(host));
}
