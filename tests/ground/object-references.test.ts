import { expect, test } from "vitest";
import { Database } from "../../infra/db/database.ts";
import { allEntities } from "../../roles/entities.ts";
import { RESULT_REFERENCES } from "../../subgraphs/compute/output/collect-result-bytes.ts";
import { emptyDatabase } from "../support/database.ts";

/**
 * Columns with hashes that name no bytes of the store of results. Whoever adds a column decides: bytes of results need a
 * condition in `RESULT_REFERENCES`, or they are removed a day after they were stored.
 */
const NO_RESULTS = [
  "compute.result_object.sha256", // the register of the store itself
  "data.asset.sha256", // the store of assets
  "data.asset_object.sha256",
  "data.asset_upload.sha256",
  "data.query_export.object_sha256",
  "data.sink_load.sha256", // an output's, which holds its bytes; they may go before a load that is asked for again
];

test("every column that names bytes of results keeps them from being removed", async () => {
  const { url, close } = await emptyDatabase();
  const db = await Database.open({ url, entities: allEntities });
  try {
    const columns = [...db.orm.getMetadata().getAll().values()].flatMap((meta) =>
      Object.values(meta.properties).flatMap(({ fieldNames }) =>
        fieldNames.filter((name) => name.includes("sha256")).map((name) => `${meta.schema}.${meta.tableName}.${name}`),
      ),
    );
    const held = columns.filter((column) => {
      const [schema, table, name] = column.split(".");
      return RESULT_REFERENCES.some((text) => text.includes(`from ${schema}.${table} t where t.${name} = o.sha256`));
    });
    expect(held.length).toBeGreaterThanOrEqual(2);
    expect(columns.filter((column) => !held.includes(column) && !NO_RESULTS.includes(column))).toEqual([]);
  } finally {
    await db.close();
    await close();
  }
});
