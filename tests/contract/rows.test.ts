import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readContract } from "../../rest-compat/contract.ts";
import { readDocuments } from "../../rest-compat/documents.ts";
import { EXTENSIONS } from "../../rest-compat/table/extensions.ts";
import { TABLE } from "../../rest-compat/table/table.ts";

const file = (path: string) => fileURLToPath(new URL(`../../schema/${path}`, import.meta.url));
const contract = readContract(file("contract/openapi.json"));
const documents = readDocuments(file("operations"));

/** Documented and not part of this release: each answers 501. A row for one of them takes it from this list. */
const NOT_SERVED = [
  ...["submitBenchmark", "getBenchmark"],
  ...["createSandbox", "listSandboxes", "getSandbox", "terminateSandbox", "refreshSandboxSecrets"],
  ...["listSandboxEvents", "getSandboxMetrics"],
  ...[
    "createSandboxExec",
    "getSandboxExec",
    "cancelSandboxExec",
    "resizeSandboxExec",
    "writeSandboxExecStdin",
    "readSandboxExecOutput",
  ],
  ...[
    "submitAgentEvent",
    "getAgentEvent",
    "createAgentRun",
    "getAgentRun",
    "deleteAgentRun",
    "resolveAgentStep",
    "listAgentSteps",
  ],
  ...[
    "getSandboxHTTP",
    "headSandboxHTTP",
    "postSandboxHTTP",
    "putSandboxHTTP",
    "patchSandboxHTTP",
    "deleteSandboxHTTP",
    "optionsSandboxHTTP",
  ],
  ...["freezeWorkload", "getWorkloadFreeze", "resumeWorkload", "getWorkloadRLGradingResults"],
  ...["previewRLRun", "createRLRun"],
  ...[
    "updatePool",
    "createPoolEnrollmentToken",
    "listPoolHosts",
    "drainPoolHost",
    "removePoolHost",
    "getPoolUtilization",
  ],
  ...["getPoolForecast", "getPoolRecommendations", "completePoolRecommendation"],
  ...["listPoolProposals", "approvePoolProposal", "rejectPoolProposal"],
  ...[
    "getPoolActionPolicies",
    "setPoolActionPolicy",
    "setPoolActKillSwitch",
    "listPoolShadowRuns",
    "startPoolShadowRun",
  ],
  ...["listPoolActionProposals", "approvePoolActionProposal", "rejectPoolActionProposal"],
  ...["listOperations", "invokeOperation"],
];

describe("the table of operations", () => {
  it("has a row for each documented operation but those that this release names as not served", () => {
    expect([...Object.keys(TABLE), ...NOT_SERVED].sort()).toEqual([...contract.operations.keys()].sort());
  });

  it("has a document of the operation's name for each row that runs one, and no document that nothing runs", () => {
    const rows = Object.entries(TABLE).filter(([, row]) => row.kind === "graph" || row.document);
    const ran = [
      ...rows.map(([id]) => id),
      ...EXTENSIONS.flatMap((extension) => ("document" in extension ? extension.document : [])),
    ];
    expect([...documents.keys()].sort()).toEqual(ran.sort());
  });

  it("names every document's operation as its file, and its answer `reply`", () => {
    for (const [name, { definitions }] of documents) {
      const [operation] = definitions;
      if (operation?.kind !== "OperationDefinition") throw new Error(`${name} does not begin with its operation`);
      expect(operation.name?.value).toBe(name);
      expect(
        operation.selectionSet.selections.some((field) => field.kind === "Field" && field.alias?.value === "reply"),
      ).toBe(true);
    }
  });

  it("keeps extensions apart from what is documented", () => {
    const documented = new Set([...contract.operations.values()].map(({ method, path }) => `${method} ${path}`));
    const both = EXTENSIONS.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`)).filter(
      (route) => documented.has(route),
    );
    expect(both).toEqual([]);
  });
});
