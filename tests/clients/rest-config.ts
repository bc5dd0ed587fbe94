/** Ids that exist, by the name of what they are ids of. */
export type Existing = Readonly<Record<string, readonly string[]>>;

/** How often a parameter names something that exists, so that requests get further than `not_found`. */
const EXISTING_SHARE = 0.6;

/** What must hold for every answer. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "ignored_auth",
  "negative_data_rejection",
  "missing_required_header",
  "use_after_free",
  "ensure_resource_availability",
];

/** Where a check does not hold, on purpose. */
const EXEMPT: readonly { check: string; operations: readonly string[] }[] = [
  // An empty value of a query is none at all: the published clients send `after=`.
  { check: "negative_data_rejection", operations: ["listWorkloads", "listWorkloadEvents"] },
  // No body at all is a file without content.
  { check: "negative_data_rejection", operations: ["uploadAsset"] },
  // The record of a deleted asset can be read for a while, with the state `deleted`.
  { check: "use_after_free", operations: ["getAsset"] },
];

/** Which parameters take which ids. */
const PARAMETERS: readonly [pathPattern: string, parameter: string, ids: string][] = [
  ["^/v1/workloads/", "path.id", "workloads"],
  ["/outputs/", "path.name", "outputs"],
  ["^/v1/assets/", "path.id", "assets"],
  ["^/v1/pools/", "path.id", "pools"],
  ["^/v1/connections/", "path.id", "connections"],
  ["^/v1/secrets/", "path.name", "secrets"],
];

/** The program's configuration for requests by the REST contract, in TOML. */
export function restConfig(existing: Existing, unserved: readonly string[]): string {
  const lines = ["[checks]", "enabled = false"];
  for (const check of CHECKS) lines.push(`${check} = { enabled = true }`);
  lines.push("[dictionaries]");
  for (const [name, values] of Object.entries(existing)) lines.push(`${name} = { values = ${JSON.stringify(values)} }`);
  for (const [pathPattern, parameter, ids] of PARAMETERS)
    lines.push(
      "[[operations]]",
      `include-path-regex = ${JSON.stringify(pathPattern)}`,
      `parameters = { ${JSON.stringify(parameter)} = { dictionary = "${ids}", probability = ${EXISTING_SHARE} } }`,
    );
  for (const { check, operations } of EXEMPT)
    lines.push(
      "[[operations]]",
      `include-operation-id = ${JSON.stringify(operations)}`,
      `checks = { ${check} = { enabled = false } }`,
    );
  lines.push("[[operations]]", `include-operation-id = ${JSON.stringify(unserved)}`, "enabled = false");
  return `${lines.join("\n")}\n`;
}
