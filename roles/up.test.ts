import { expect, test } from "vitest";
import { readSettings, SettingsError } from "../infra/telemetry/environment.ts";
import { up } from "./up.ts";

test.each([
  [{ NODUS_ROLES: "worker", DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }, "NODUS_ROLES"],
  [{ NODUS_SUBGRAPH_URLS: "compute=http://127.0.0.1:4001" }, "NODUS_SUBGRAPH_URLS"],
])(
  "what this release cannot do with %j is refused by the variable's name before anything starts",
  async (environment, variable) => {
    const refused = await up(readSettings(environment)).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SettingsError);
    expect((refused as Error).message).toContain(variable);
  },
);
