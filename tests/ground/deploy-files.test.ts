import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { environmentFor, readSettings, unknownVariables } from "../../infra/telemetry/environment.ts";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { type Role, SETTINGS, SUBGRAPHS } from "../../infra/telemetry/setting-table.ts";
import { planProcess } from "../../roles/process-plan.ts";
import { composeProcesses, composeServices, type DescribedProcess, systemdProcesses } from "../support/deploy-files.ts";

const VARIABLES = new Set<string>(Object.values(SETTINGS).map(({ variable }) => variable));

function settingsOf({ args, environment }: DescribedProcess) {
  const [command = "", name] = args;
  if (command === "up") return readSettings(environment);
  return readSettings(environmentFor((command === "subgraph" ? name : command) as Role, environment));
}

describe.each([
  { file: "compose.yaml", processes: composeProcesses() },
  { file: "the systemd units", processes: systemdProcesses() },
])("$file", ({ processes }) => {
  const all = Object.entries(processes);
  const planned = all.filter(([, { args }]) => args[0] !== "host-agent");
  const plans = new Map(planned.map(([name, process]) => [name, planProcess(settingsOf(process))]));

  test("starts every role, with commands and settings that the command line knows", () => {
    for (const [name, { environment }] of all) {
      expect(unknownVariables(environment), name).toEqual([]);
      expect(
        Object.keys(environment).filter((variable) => !VARIABLES.has(variable)),
        name,
      ).toEqual([]);
    }
    const roles = [...plans.values()];
    expect(roles.filter(({ gateway }) => gateway)).toHaveLength(1);
    expect(roles.filter(({ worker }) => worker)).toHaveLength(1);
    expect(roles.filter(({ intake }) => intake)).toHaveLength(1);
    expect(roles.flatMap(({ subgraphs }) => subgraphs).sort()).toEqual([...SUBGRAPHS].sort());
    expect(roles.every(({ alone }) => !alone)).toBe(true);
    const hosts = all.filter(([, { args }]) => args[0] === "host-agent");
    expect(hosts.map(([, process]) => settingsOf(process).roles)).toEqual([["host-agent"]]);
  });

  test("names addresses at which the right process listens", () => {
    const at = (url: string) => {
      const { hostname, port } = new URL(url);
      const found = all.find(([, { host, environment }]) => host === hostname && environment.PORT === port);
      expect(found, url).toBeDefined();
      return plans.get(found![0])!;
    };
    const { subgraphUrls, intakeUrl } = settingsOf(processes.gateway!);
    for (const [name, url] of subgraphUrls) expect(at(url).subgraphs).toContain(name);
    expect(at(intakeUrl!).intake).toBe(true);
    const listens = all.map(([, { host, environment }]) => `${host}:${environment.PORT}`);
    expect(new Set(listens).size).toBe(all.length);
  });

  test("tells all processes the same", () => {
    const own = new Set(["PORT", "NODUS_ROLES"]);
    const shared = planned.map(([, { environment }]) =>
      Object.fromEntries(Object.entries(environment).filter(([variable]) => !own.has(variable))),
    );
    for (const environment of shared) expect(environment).toEqual(shared[0]);
  });
});

test("compose.yaml publishes the port that the gateway listens on, keeps jobs in Redis and asks health where it is", () => {
  const services = composeServices();
  const { PORT } = services.gateway!.environment;
  expect(services.gateway!.ports).toEqual([`4000:${PORT}`]);
  expect(services.redis!.command.join(" ")).toContain("--maxmemory-policy noeviction");
  const text = readFileSync(projectFile("infra", "deploy", "compose.yaml"), "utf8");
  expect(text).toContain(`http://127.0.0.1:${PORT}/readyz`);
});

test("compose.yaml waits for the database that others reach, and reaps what guests leave behind", () => {
  const services = composeServices();
  // A new data folder is prepared by a server on a socket alone, which must not count as the database.
  expect(services.postgres!.healthcheck.test.join(" ")).toMatch(/^CMD pg_isready -h 127\.0\.0\.1 /);
  for (const name of Object.keys(composeProcesses())) expect(services[name], name).toMatchObject({ init: true });
});

test("the image listens where compose.yaml expects it, and starts the program that the build makes", () => {
  const image = readFileSync(projectFile("infra", "deploy", "Dockerfile"), "utf8");
  expect(image).toContain(`EXPOSE ${composeServices().gateway!.environment.PORT}`);
  expect(image).toContain('ENTRYPOINT ["node", "/nodus/dist/nodus.js"]');
  const { bin } = JSON.parse(readFileSync(projectFile("package.json"), "utf8")) as { bin: { nodus: string } };
  expect(bin.nodus).toBe("dist/nodus.js");
});

test("the target of systemd wants every unit", () => {
  const target = readFileSync(projectFile("infra", "deploy", "systemd", "nodus.target"), "utf8");
  const wanted = /^Wants=(.*)$/m.exec(target)![1]!.split(" ").sort();
  expect(wanted).toEqual(
    Object.keys(systemdProcesses())
      .map((name) => `nodus-${name}.service`)
      .sort(),
  );
});

test("units leave bubblewrap what it needs, and guests their lives when their supervisor is killed", () => {
  const unit = (name: string) =>
    readFileSync(projectFile("infra", "deploy", "systemd", `nodus-${name}.service`), "utf8");
  for (const name of ["worker", "host-agent"])
    expect(unit(name)).not.toMatch(
      /^(RestrictNamespaces|ProtectKernel\w+|ProtectControlGroups|ProtectProc|PrivateDevices|CapabilityBoundingSet)=/m,
    );
  expect(unit("host-agent")).toMatch(/^KillMode=process$/m);
  for (const name of Object.keys(systemdProcesses())) expect(unit(name), name).toMatch(/^StartLimitIntervalSec=0$/m);
});
