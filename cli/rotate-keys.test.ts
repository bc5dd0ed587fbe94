import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { tableOf } from "../infra/db/columns.ts";
import { newId } from "../infra/kernel/ids.ts";
import { allEntities } from "../roles/entities.ts";
import { deploymentKeys, type KeySettings } from "../roles/keys.ts";
import { SEALED_TABLES } from "../subgraphs/data/secret/sealed-tables.ts";
import { SecretBox } from "../subgraphs/data/secret/secret-box.ts";
import { type TestDatabase, testDatabase } from "../tests/support/database.ts";
import { type RotationStep, rotation } from "./rotate-keys.ts";

let database: TestDatabase;
const now = new Date("2026-03-01T12:00:00Z");
const VALUES = 5;

beforeAll(async () => {
  database = await testDatabase(allEntities);
});
afterAll(() => database?.close());
beforeEach(async () => {
  await database.db.sql("truncate data.secret_version, data.webhook, data.github_account, data.asset_import");
});

/** Settings of a platform with a data folder of its own, and with the keys that are given. */
function platform(given: Partial<KeySettings> = {}): KeySettings {
  const dataDir = mkdtempSync(path.join(tmpdir(), "nodus-keys-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  return { dataDir, masterKey: null, previousMasterKey: null, ...given };
}

/** What a platform that starts with these settings opens and seals with. */
function boxOf(settings: KeySettings): SecretBox {
  const { secrets, otherSecrets } = deploymentKeys(settings);
  return new SecretBox(secrets, otherSecrets);
}

/** Five values in each table that has any. */
async function fill(box: SecretBox, prefix = "v"): Promise<void> {
  for (let n = 0; n < VALUES; n++) {
    const tenantId = `team_${prefix}${n}`;
    const secretId = newId("secret", now);
    const place = {
      "data.secret_version": { tenantId, secretId, version: 3 },
      "data.webhook": { tenantId, version: 2, url: "https://example.com/" },
      "data.github_account": { tenantId, login: "octo", connectedBy: "key_1" },
      "data.asset_import": { tenantId, assetId: newId("asset", now), resumable: true, fence: 1 },
    };
    for (const table of SEALED_TABLES) {
      const name = nameOf(table);
      const row = {
        ...place[name as keyof typeof place],
        masterKeyId: "",
        wrappedKey: Buffer.of(),
        ciphertext: Buffer.of(),
      };
      Object.assign(row, box.seal(Buffer.from(`${name} ${prefix}${n}`), table.contextOf(row)));
      const columns = Object.entries(row).map(([key, value]) => [
        key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
        value,
      ]);
      const times = await timeColumns(name);
      const names = [...columns.map(([column]) => column), ...times];
      const values = [...columns.map(([, value]) => value), ...times.map(() => now)];
      await database.db.sql(
        `insert into ${name} (${names.join(", ")}) values (${names.map((_, i) => `$${i + 1}`).join(", ")})`,
        values,
      );
    }
  }
}

const nameOf = ({ type }: (typeof SEALED_TABLES)[number]) => tableOf(type);

async function timeColumns(table: string): Promise<string[]> {
  const [schema, name] = table.split(".");
  const rows = await database.db.sql<{ column_name: string }>(
    `select column_name from information_schema.columns where table_schema = $1 and table_name = $2
        and is_nullable = 'NO' and data_type like 'timestamp%'`,
    [schema, name],
  );
  return rows.map(({ column_name }) => column_name);
}

/** Every stored value as this box opens it, in order. Throws where it opens none. */
async function readAll(box: SecretBox): Promise<string[]> {
  const values: string[] = [];
  for (const table of SEALED_TABLES)
    for (const row of await database.db.rows(table.type, ""))
      values.push(box.open(row, table.contextOf(row)).toString());
  return values.sort();
}

const expected = (prefix = "v") =>
  SEALED_TABLES.flatMap((table) => Array.from({ length: VALUES }, (_, n) => `${nameOf(table)} ${prefix}${n}`)).sort();

/** Runs a change for so many steps, as a process that is killed after the last of them would. */
async function steps(settings: KeySettings, most = Number.POSITIVE_INFINITY, batch = 2): Promise<RotationStep[]> {
  const taken: RotationStep[] = [];
  for await (const step of rotation(settings, database.db, batch)) {
    taken.push(step);
    if (taken.length >= most) break;
  }
  return taken;
}

test("every table with sealed values is gone through", () => {
  const metadata = database.db.orm.getMetadata().getAll();
  const sealed = [...metadata.values()].filter((type) => "masterKeyId" in type.properties);
  expect(sealed.map((type) => `${type.schema}.${type.tableName}`).sort()).toEqual(SEALED_TABLES.map(nameOf).sort());
});

describe("a key in a file", () => {
  test("is replaced by a new one, under which everything is readable and nothing under the old one alone", async () => {
    const settings = platform();
    const before = boxOf(settings);
    await fill(before);
    const taken = await steps(settings);
    expect(taken.at(-1)).toEqual({ step: "done", unreadable: 0 });
    const after = new SecretBox(deploymentKeys(settings).secrets);
    expect(await readAll(after)).toEqual(expected());
    await expect(readAll(before)).rejects.toThrow("is not configured");
    const file = path.join(settings.dataDir, "master.key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${file}.old`).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.next`)).toBe(false);
  });

  test("may be changed again and again, and what was restored from before the last change opens", async () => {
    const settings = platform();
    await fill(boxOf(settings), "a");
    await steps(settings);
    await database.db.sql("truncate data.secret_version, data.webhook, data.github_account, data.asset_import");
    const second = boxOf(settings);
    await fill(second, "b");
    await steps(settings);
    expect(await readAll(boxOf(settings))).toEqual(expected("b"));
    const masterKeyIds = SEALED_TABLES.map(({ type }) => database.db.rows(type, ""));
    const ids = new Set((await Promise.all(masterKeyIds)).flat().map((row) => row.masterKeyId));
    expect([...ids]).toEqual([deploymentKeys(settings).secrets.id]);
    expect(boxOf(settings).has(second.currentKeyId)).toBe(true);
  });

  test("that is changed by a process which dies at any step leaves everything readable, and the next try ends it", async () => {
    const whole = platform();
    await fill(boxOf(whole));
    const count = (await steps(whole)).length;
    expect(count).toBeGreaterThan(SEALED_TABLES.length * 2);
    for (let died = 1; died <= count; died++) {
      await database.db.sql("truncate data.secret_version, data.webhook, data.github_account, data.asset_import");
      const settings = platform();
      await fill(boxOf(settings));
      await steps(settings, died);
      // A platform that starts now opens what is there and seals more.
      const between = boxOf(settings);
      expect(await readAll(between)).toEqual(expected());
      await fill(between, "w");
      await steps(settings);
      const after = new SecretBox(deploymentKeys(settings).secrets);
      expect(await readAll(after)).toEqual([...expected(), ...expected("w")].sort());
    }
  }, 60_000);

  test("is not lost to a process that dies while it puts the next one in its place", async () => {
    const settings = platform();
    await fill(boxOf(settings));
    await steps(settings, 1);
    const file = path.join(settings.dataDir, "master.key");
    writeFileSync(`${file}.old`, readFileSync(file)); // the copy is made, the name is not yet moved
    expect(await readAll(boxOf(settings))).toEqual(expected());
    await steps(settings);
    expect(await readAll(boxOf(settings))).toEqual(expected());
  });
});

describe("a key that is given", () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];

  test("is changed by giving the new one with the one so far", async () => {
    const settings = platform({ masterKey: first });
    await fill(boxOf(settings));
    const changed = { ...settings, masterKey: second, previousMasterKey: first };
    expect(await readAll(boxOf(changed))).toEqual(expected());
    await steps(changed, 3);
    expect(await readAll(boxOf(changed))).toEqual(expected());
    await steps(changed);
    expect(await readAll(boxOf({ ...settings, masterKey: second }))).toEqual(expected());
    expect(existsSync(path.join(settings.dataDir, "master.key"))).toBe(false);
  });

  test("takes over from a key file", async () => {
    const settings = platform();
    await fill(boxOf(settings));
    const given = { ...settings, masterKey: first };
    await steps(given);
    expect(await readAll(new SecretBox(deploymentKeys({ ...platform(), masterKey: first }).secrets))).toEqual(
      expected(),
    );
  });

  test("without the one so far is refused, and what no key opens is counted and left", async () => {
    const settings = platform({ masterKey: first });
    await fill(boxOf(settings));
    await expect(steps({ ...settings, masterKey: second })).rejects.toThrow("NODUS_MASTER_KEY_PREVIOUS");
    const wrong = { ...settings, masterKey: second, previousMasterKey: randomBytes(32) };
    expect((await steps(wrong)).at(-1)).toEqual({ step: "done", unreadable: VALUES * SEALED_TABLES.length });
    expect(await readAll(boxOf(settings))).toEqual(expected());
  });
});
