import type { OpenApi } from "../../rest-compat/contract.ts";

/** A small face with the shapes that the real one has: open and closed bodies, maps, keys, both envelopes, bytes. */
export const smallContract: OpenApi = {
  paths: {
    "/v1/things": {
      get: {
        operationId: "listThings",
        parameters: [
          { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 10, default: 5 } },
          { name: "after", in: "query", schema: { type: "string", maxLength: 4 } },
        ],
        responses: { 200: json({ type: "object" }), default: error("Error") },
      },
      post: {
        operationId: "createThing",
        parameters: [{ name: "Idempotency-Key", in: "header", required: true, schema: { type: "string" } }],
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/ThingCreate" } } } },
        responses: { 202: json({ $ref: "#/components/schemas/Thing" }), default: error("Error") },
      },
    },
    "/v1/things/{id}": {
      get: {
        operationId: "getThing",
        parameters: [inPath("id")],
        responses: { 200: json({ $ref: "#/components/schemas/Thing" }), default: error("SandboxError") },
      },
      delete: {
        operationId: "deleteThing",
        parameters: [inPath("id")],
        responses: { 204: {}, default: error("Error") },
      },
    },
    "/v1/things/{id}/content": {
      get: { operationId: "readThing", parameters: [inPath("id")], responses: { 200: {}, default: error("Error") } },
      put: {
        operationId: "writeThing",
        parameters: [inPath("id")],
        responses: { 200: json({}), default: error("Error") },
      },
    },
    "/v1/later": { post: { operationId: "laterThing", responses: { 200: json({}), default: error("SandboxError") } } },
  },
  components: {
    schemas: {
      ThingCreate: {
        type: "object",
        properties: {
          name: { type: "string" },
          settings: {
            type: ["object", "null"],
            properties: { max_cost_usd: { type: "number" }, env_vars: { type: "object" } },
          },
          strict: {
            type: "object",
            additionalProperties: false,
            properties: { only_this: { type: "integer" } },
            required: ["only_this"],
          },
        },
      },
      Thing: {
        type: "object",
        properties: { id: { type: "string" }, note: { type: "string" }, gone_at: { type: ["string", "null"] } },
      },
      Error: { type: "object" },
      SandboxError: { type: "object" },
    },
  },
};
function json(schema: object) {
  return { content: { "application/json": { schema } } };
}
function error(name: string) {
  return json({ $ref: `#/components/schemas/${name}` });
}
function inPath(name: string) {
  return { name, in: "path" as const, required: true, schema: { type: "string" } };
}
