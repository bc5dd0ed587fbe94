import fc from "fast-check";
import { expect, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { readContract } from "../../rest-compat/contract.ts";
import { TABLE } from "../../rest-compat/table/table.ts";
import { checkResponse } from "../contract/check-response.ts";
import { anotherTeam } from "../support/another-team.ts";
import { type BodySchema, hostileBody, hostileText } from "../support/hostile-bodies.ts";
import { sharedPlatform } from "../support/platform.ts";

const platform = sharedPlatform();
const contract = readContract(projectFile("schema", "contract", "openapi.json"));

const SERVED = [...contract.operations.values()].filter(({ id }) => id in TABLE);
const WITHOUT_BODY = new Set(["get", "head"]);

test("no documented operation ever answers a made-up request with a fault", { timeout: 120_000 }, async () => {
  const { client } = await anotherTeam(platform());
  const requests = fc.constantFrom(...SERVED).chain((operation) => {
    const values = (where: "path" | "query") => {
      const names = operation.parameters.filter((parameter) => parameter.in === where).map(({ name }) => name);
      const text = hostileText.map((value) => value.toWellFormed());
      return fc.record(
        Object.fromEntries(names.map((name) => [name, text])),
        where === "path" ? {} : { requiredKeys: [] },
      );
    };
    return fc.record({
      operation: fc.constant(operation),
      path: values("path"),
      query: values("query"),
      body: operation.body ? hostileBody(contract, operation.body as BodySchema) : fc.constant(undefined),
      key: fc.uuid(),
    });
  });
  const statuses = new Set<number>();
  await fc.assert(
    fc.asyncProperty(requests, async ({ operation, path, query, body, key }) => {
      const url = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) =>
        encodeURIComponent((path as Record<string, string>)[name]!),
      );
      const answer = await client.send(
        operation.method.toUpperCase(),
        `${url}?${new URLSearchParams(query as Record<string, string>)}`,
        {
          body: WITHOUT_BODY.has(operation.method) || body === undefined ? undefined : JSON.stringify(body),
          headers: { "idempotency-key": key, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        },
      );
      statuses.add(answer.status);
      expect(answer.status).toBeLessThan(500);
      const isPlain = Object.values(path as Record<string, string>).every((value) => /^[\w-]{1,40}$/.test(value));
      if (isPlain) checkResponse(operation.id, answer.status, answer.headers, answer.body);
    }),
    { numRuns: 500, seed: 20_261_129 },
  );
  // Requests that are all refused at the door would show nothing.
  expect([...statuses]).toEqual(expect.arrayContaining([200, 201, 400, 404]));
});

test("what is documented and not served says so, to everybody alike", { timeout: 60_000 }, async () => {
  const unserved = [...contract.operations.values()].filter(({ id }) => !(id in TABLE));
  expect(unserved.length).toBeGreaterThan(40);
  for (const { id, method, path } of unserved) {
    const url = path.replace(/\{([^}]+)\}/g, "8080");
    const { status, body } = await platform().admin.send(method.toUpperCase(), url);
    expect([id, status]).toEqual([id, 501]);
    if (method !== "head") expect(body.error ?? body.code).toBe("not_implemented");
  }
});
