import { expect, test } from "vitest";
import { environmentFor, readSettings, SettingsError } from "../infra/telemetry/environment.ts";
import { SUBGRAPHS } from "../infra/telemetry/setting-table.ts";
import { planProcess } from "./process-plan.ts";

const SHARED = {
  DATABASE_URL: "postgres://db/nodus",
  NODUS_PUBLIC_URL: "https://nodus.example",
  NODUS_INTAKE_URL: "http://intake:4000",
};
const URLS = SUBGRAPHS.map((name) => `${name}=http://${name}:4000`).join(",");

const planOf = (environment: Record<string, string>) => planProcess(readSettings(environment));

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    planOf(environment);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

test("without a word about roles, everything runs in one process that runs alone", () => {
  expect(planOf({})).toMatchObject({ name: "platform", alone: true, gateway: true, worker: true, intake: true });
  expect(planOf({}).subgraphs).toEqual(SUBGRAPHS);
});

test("a gateway asks the subgraphs that do not run in its own process", () => {
  const apart = planOf({ ...SHARED, NODUS_ROLES: "gateway", NODUS_SUBGRAPH_URLS: URLS });
  expect(apart).toMatchObject({ alone: false, gateway: true, worker: false, intake: false, subgraphs: [] });
  expect([...apart.remoteSubgraphs.keys()]).toEqual(SUBGRAPHS);
  const partly = planOf({ ...SHARED, NODUS_ROLES: "gateway,compute,rl", NODUS_SUBGRAPH_URLS: URLS });
  expect(partly.subgraphs).toEqual(["compute", "rl"]);
  expect([...partly.remoteSubgraphs]).toEqual(
    ["sandboxes", "pools", "data"].map((name) => [name, `http://${name}:4000`]),
  );
});

test("the same environment serves every role, so that a deployment needs one", () => {
  const shared = { ...SHARED, NODUS_SUBGRAPH_URLS: URLS };
  for (const role of ["gateway", "worker", "intake", ...SUBGRAPHS] as const)
    expect(planProcess(readSettings(environmentFor(role, shared))).name).toBe(role);
});

test("a role of the command line and another one of the environment are refused", () => {
  expect(() => environmentFor("worker", { NODUS_ROLES: "gateway" })).toThrow(/NODUS_ROLES is gateway/);
  expect(environmentFor("worker", { NODUS_ROLES: "worker", PORT: "1" })).toEqual({ NODUS_ROLES: "worker", PORT: "1" });
});

test.each([
  [{ NODUS_SUBGRAPH_URLS: "compute=http://127.0.0.1:4001" }, "NODUS_SUBGRAPH_URLS must be unset"],
  [
    { ...SHARED, NODUS_ROLES: "gateway,compute,data", NODUS_SUBGRAPH_URLS: "rl=http://rl" },
    "NODUS_SUBGRAPH_URLS must say where sandboxes, pools can be found",
  ],
  [{ ...SHARED, NODUS_ROLES: "worker", NODUS_INTAKE_URL: "" }, "NODUS_INTAKE_URL must be set"],
  [{ ...SHARED, NODUS_ROLES: "compute", NODUS_PUBLIC_URL: "" }, "NODUS_PUBLIC_URL must be set"],
  [{ ...SHARED, NODUS_ROLES: "worker,host-agent" }, "NODUS_ROLES must name host-agent alone"],
  [
    { ...SHARED, NODUS_ROLES: "gateway", NODUS_SUBGRAPH_URLS: URLS.replace("rl:4000", "rl:4000/subgraphs/rl/graphql") },
    "NODUS_SUBGRAPH_URLS must give the address of rl's process without /subgraphs/rl/graphql",
  ],
  [
    { ...SHARED, NODUS_ROLES: "gateway", PORT: "80", NODUS_SUBGRAPH_URLS: URLS.replace("rl:4000", "localhost") },
    "NODUS_SUBGRAPH_URLS must not send the gateway to itself: rl does not run in this process",
  ],
  [{ NODUS_ROLES: "worker" }, "DATABASE_URL must be set"],
  [{ DATABASE_URL: "postgres://db/nodus?options=-c%20search_path%3Dx" }, "DATABASE_URL must not carry options"],
  [{ DATABASE_URL: "postgres://db/nodus?sslmod=verify-full" }, "DATABASE_URL must not carry sslmod, "],
  [{ DATABASE_URL: "postgres://db/nodus?sslMode=verify-full" }, "DATABASE_URL must not carry sslMode, "],
  [{ DATABASE_URL: "postgres://db/nodus?sslmode=verify_full" }, "DATABASE_URL must have one of these as its sslmode: "],
])("settings that do not go together are refused by name: %j", (environment, problem) => {
  expect(problemsOf(environment)).toEqual([expect.stringContaining(problem)]);
});

test.each([
  { PORT: "4000", HOST: "10.0.0.5" },
  { PORT: "4001", HOST: "0.0.0.0" },
])("another process of the machine may be asked by a gateway at %j", (place) => {
  const subgraphs = URLS.replaceAll(/\w+:4000/g, "127.0.0.1:4000");
  expect(problemsOf({ ...SHARED, ...place, NODUS_ROLES: "gateway", NODUS_SUBGRAPH_URLS: subgraphs })).toEqual([]);
});

test("any combination of roles is either planned, or refused with the names of the settings to change", () => {
  const parts = ["gateway", "worker", "intake", "host-agent", "compute", "data"] as const;
  for (let chosen = 1; chosen < 2 ** parts.length; chosen++) {
    const roles = parts.filter((_, bit) => chosen & (1 << bit));
    const environment = { ...SHARED, NODUS_ROLES: roles.join(","), NODUS_SUBGRAPH_URLS: URLS };
    const problems = problemsOf(environment);
    if (roles.includes("host-agent"))
      expect(problems, roles.join()).toEqual([expect.stringMatching(/^NODUS_ROLES must name host-agent alone/)]);
    else {
      expect(problems, roles.join()).toEqual([]);
      expect(planOf(environment)).toMatchObject({ name: roles.join("+"), alone: false });
    }
  }
});

test("workers that leave their machine alone need no address of intake", () => {
  expect(planOf({ ...SHARED, NODUS_ROLES: "worker", NODUS_INTAKE_URL: "", NODUS_LOCAL_CAPACITY: "off" }).worker).toBe(
    true,
  );
});
