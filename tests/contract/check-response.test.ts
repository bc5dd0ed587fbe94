import { describe, expect, it } from "vitest";
import { checkResponse } from "./check-response.ts";

const json = { "content-type": "application/json; charset=utf-8" };

describe("the check of answers against the contract", () => {
  it("takes what the contract allows", () => {
    checkResponse(
      "createWorkload",
      202,
      { ...json, "Idempotent-Replayed": "true" },
      { id: "wl_1", workload_id: "wl_1", status: "accepted", revision: 1 },
    );
    checkResponse("deleteAsset", 204, {}, "");
    checkResponse("getWorkload", 404, json, { error: "not_found", message: "No." });
    checkResponse("getSandbox", 404, json, {
      code: "not_found",
      message: "No.",
      fix: "Look.",
      url: "https://nodus.test/help",
    });
    checkResponse("liveLogs", 401, json, { error: "unauthorized", message: "No." });
    checkResponse("downloadWorkloadOutput", 200, new Headers({ "content-type": "application/octet-stream" }), "bytes");
  });

  it.each([
    ["a missing required member", "createWorkload", 202, json, { id: "wl_1" }],
    ["a null where none is allowed", "listWorkloads", 200, json, { workloads: [], next_offset: null }],
    ["a time that is none", "getWorkload", 200, json, { created_at: "yesterday" }],
    ["another error envelope", "getSandbox", 404, json, { error: "not_found", message: "No." }],
    ["a body where none is documented", "deleteAsset", 204, json, {}],
    ["another media type", "getWorkload", 200, { "content-type": "text/plain" }, {}],
    [
      "a header with another value",
      "listWorkloadRLEvents",
      200,
      { ...json, "cache-control": "public" },
      { schema_version: 1, events: [], next_cursor: "", has_more: false, dropped_events: 0, truncated: false },
    ],
    ["a success that is not documented", "getBenchmark", 201, json, {}],
    ["an unknown operation", "flyToTheMoon", 200, json, {}],
  ])("refuses %s", (_, operationId, status, headers, body) => {
    expect(() => checkResponse(operationId, status, headers, body)).toThrow(operationId);
  });
});
