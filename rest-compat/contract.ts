import { readFileSync } from "node:fs";
import { type JsonSchema, refName } from "./wire/schema.ts";

export const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"] as const;
export type Method = (typeof METHODS)[number];

/** A documented path, query or header parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>;
}

interface OperationObject {
  readonly operationId?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { schema: JsonSchema }>>;
  };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<Method, OperationObject>>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** Which of the two documented error bodies an operation answers with. */
export type Envelope = "general" | "sandbox";

/** What the contract says about one operation, in the form that the interpreter needs. */
export interface Operation {
  readonly id: string;
  readonly method: Method;
  /** As documented, such as `/v1/workloads/{id}`. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** The JSON body's schema; null for an operation without a JSON body. */
  readonly body: JsonSchema | null;
  /** The documented success statuses, lowest first; empty where only `default` is documented. */
  readonly successes: readonly number[];
  readonly envelope: Envelope;
  /** Whether an `Idempotency-Key` header is required. */
  readonly keyed: boolean;
}

/** The REST contract of record, read once at start. */
export interface Contract {
  readonly document: OpenApi;
  readonly operations: ReadonlyMap<string, Operation>;
  /** Schema of the JSON body that an operation answers with a status; null when it has none. */
  response(operationId: string, status: number): JsonSchema | null;
}

/** Reads `schema/contract/openapi.json`. */
export function readContract(file: string): Contract {
  return contractOf(JSON.parse(readFileSync(file, "utf8"), withoutNullRequired) as OpenApi);
}

/** The published wire says `required: null` in one schema. That is no JSON Schema; what it means is nothing. */
function withoutNullRequired(key: string, value: unknown): unknown {
  return key === "required" && value === null ? undefined : value;
}

/** Indexes a contract by operationId. */
export function contractOf(document: OpenApi): Contract {
  const operations = new Map<string, Operation>();
  for (const [path, item] of Object.entries(document.paths))
    for (const method of METHODS) {
      const operation = item[method];
      if (operation?.operationId)
        operations.set(operation.operationId, describe(operation, operation.operationId, method, path));
    }
  return { document, operations, response: (id, status) => responseSchema(document, operations.get(id), status) };
}

function describe(operation: OperationObject, id: string, method: Method, path: string): Operation {
  const parameters = operation.parameters ?? [];
  const statuses = Object.keys(operation.responses);
  const sandbox = Object.values(operation.responses).some((r) => refName(jsonOf(r)) === "SandboxError");
  return {
    id,
    method,
    path,
    parameters,
    body: operation.requestBody?.content["application/json"]?.schema ?? null,
    successes: statuses.filter((s) => s.startsWith("2")).map(Number),
    envelope: sandbox ? "sandbox" : "general",
    keyed: parameters.some((p) => p.in === "header" && p.name === "Idempotency-Key" && p.required === true),
  };
}

function responseSchema(document: OpenApi, operation: Operation | undefined, status: number): JsonSchema | null {
  if (!operation) throw new Error("no such operation in the contract");
  const responses = document.paths[operation.path]![operation.method]!.responses;
  return jsonOf(responses[status] ?? responses.default ?? {}) ?? null;
}

function jsonOf(response: Response): JsonSchema | undefined {
  return response.content?.["application/json"]?.schema;
}
