import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { NetworkPolicy } from "../../../../infra/runner/protocol.ts";
import type { WorkloadPayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { egressHost } from "./egress-host.ts";
import { at, refuse } from "./refuse.ts";
import { hasControl } from "./text.ts";

type Policy = WorkloadPayload["policy"];

const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const MAX_REGIONS = 64;
const MAX_REGION_LENGTH = 128;

/** Where the deployment lets guests go. */
export interface NetworkSettings {
  workloadNetwork: NetworkPolicy["mode"];
  allowPrivateHosts: string[];
}

/** Checks a policy; hosts are answered as they will be compared, each once. */
export function checkPolicy(given: Policy): Policy {
  const { data_regions: regions, secret_refs: secrets, egress_allow: hosts } = given;
  (regions ?? []).forEach((region, index) => {
    if (region === "" || region.length > MAX_REGION_LENGTH || hasControl(region) || region !== region.trim())
      refuse(WORKLOAD.invalid_policy, at("/policy/data_regions", index), "A region is one word.");
  });
  if ((regions?.length ?? 0) > MAX_REGIONS)
    refuse(WORKLOAD.invalid_policy, "/policy/data_regions", `There are more than ${MAX_REGIONS} regions.`);
  return {
    ...given,
    ...(secrets === undefined ? {} : { secret_refs: checkSecrets(secrets) }),
    ...(hosts === undefined ? {} : { egress_allow: checkHosts(hosts) }),
  };
}

function checkSecrets(names: string[]): string[] {
  const field = "/policy/secret_refs";
  if (names.length > LIMITS.workloadSecretRefs)
    refuse(WORKLOAD.invalid_secret_ref, field, `There are more than ${LIMITS.workloadSecretRefs} secrets.`);
  names.forEach((name, index) => {
    if (!SECRET_NAME.test(name)) refuse(WORKLOAD.invalid_secret_ref, at(field, index));
    if (names.indexOf(name) !== index)
      refuse(WORKLOAD.invalid_secret_ref, at(field, index), `The secret ${name} is listed twice.`);
  });
  return names;
}

/** The environment variable that carries a secret; names differ in case, so it is kept. */
export function secretVariable(name: string): string {
  return `NODUS_SECRET_${name}`;
}

function checkHosts(hosts: string[]): string[] {
  const field = "/policy/egress_allow";
  if (hosts.length > LIMITS.workloadEgressHosts)
    refuse(WORKLOAD.invalid_egress_host, field, `There are more than ${LIMITS.workloadEgressHosts} hosts.`);
  const checked = hosts.map((text, index) => {
    const host = egressHost(text);
    if (host === null) refuse(WORKLOAD.invalid_egress_host, at(field, index));
    return host;
  });
  return [...new Set(checked)];
}

/** Secrets, a live connection or egress rules: they hold only where guests are isolated. */
export function needsIsolation({ policy, connections }: Pick<WorkloadPayload, "policy" | "connections">): boolean {
  return Boolean(policy.secret_refs?.length || policy.egress_allow?.length || connections?.length);
}

/**
 * What a guest may reach: only the listed hosts as soon as the workload has something to lose, else the default. With a
 * live connection nothing is reached without encryption; its hosts are added once it is found.
 */
export function networkOf(payload: Pick<WorkloadPayload, "policy" | "connections">, settings: NetworkSettings) {
  return {
    mode: needsIsolation(payload) ? ("allowlist" as const) : settings.workloadNetwork,
    hosts: payload.policy.egress_allow ?? [],
    allowPrivate: settings.allowPrivateHosts,
    ...(payload.connections?.length ? { httpsOnly: true } : {}),
  } satisfies NetworkPolicy;
}
