import { fileURLToPath } from "node:url";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { type Contract, readContract } from "../../rest-compat/contract.ts";

/** A header map as fetch and Fastify's inject give it. */
export type ResponseHeaders = Headers | Readonly<Record<string, string | string[] | number | undefined>>;

interface DocumentedResponse {
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
  readonly headers?: Readonly<Record<string, { readonly schema: object }>>;
}

const contract: Contract = readContract(fileURLToPath(new URL("../../schema/contract/openapi.json", import.meta.url)));
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ $id: "contract:/", components: contract.document.components });
const compiled = new Map<string, ValidateFunction>();

/**
 * Throws unless an answer is one that the contract allows for the operation: a documented status or `default`, the
 * documented media type, a body that fits its schema, documented headers with allowed values.
 * The body is the parsed JSON, or the text of an answer that is not JSON.
 */
export function checkResponse(operationId: string, status: number, headers: ResponseHeaders, body: unknown): void {
  const operation = contract.operations.get(operationId);
  if (!operation) throw new Error(`the contract has no operation ${operationId}`);
  const responses: Readonly<Record<string, DocumentedResponse>> =
    contract.document.paths[operation.path]![operation.method]!.responses;
  const documented = responses[status] ?? responses.default;
  // Authentication, limits and faults go before operations that document a few statuses only: they use the general error.
  if (!documented && status < 400) throw new Error(`${operationId} documents no ${status}`);
  const response = documented?.content || status < 400 ? documented! : GENERAL_ERROR;
  const fault = problems(operationId, status, response, headers, body);
  if (fault.length > 0)
    throw new Error(`${operationId} answered ${status}: ${fault.join("; ")}\n${JSON.stringify(body)?.slice(0, 2000)}`);
}

const GENERAL_ERROR: DocumentedResponse = {
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

function problems(
  operationId: string,
  status: number,
  response: DocumentedResponse,
  headers: ResponseHeaders,
  body: unknown,
): string[] {
  const found: string[] = [];
  for (const [name, { schema }] of Object.entries(response.headers ?? {})) {
    const value = headerOf(headers, name);
    if (value !== undefined)
      found.push(...mismatches(`${operationId} ${name}`, schema, value).map((words) => `header ${name} ${words}`));
  }
  if (!response.content)
    return body === undefined || body === "" || body === null
      ? found
      : [...found, "has a body where none is documented"];
  const type = headerOf(headers, "content-type")?.split(";")[0] ?? "";
  const media = response.content[type];
  if (!media)
    return [
      ...found,
      `has the media type ${JSON.stringify(type)}, documented are ${Object.keys(response.content).join(", ")}`,
    ];
  if (!media.schema || type !== "application/json") return found;
  return [...found, ...mismatches(`${operationId} ${status}`, media.schema, body).map((words) => `body${words}`)];
}

function mismatches(key: string, schema: object, value: unknown): string[] {
  const validate = compiled.get(key) ?? compile(schema);
  compiled.set(key, validate);
  if (validate(value)) return [];
  return validate.errors!.map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

/** Compiled on its own, a schema's `#/…` would mean the schema itself; the contract's components are meant. */
function compile(schema: object): ValidateFunction {
  return ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"contract:/#/')) as object);
}

function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name] ?? headers[name.toLowerCase()];
  return value === undefined ? undefined : String(value);
}
