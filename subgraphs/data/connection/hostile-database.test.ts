import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import {
  type Attack,
  column,
  endlessly,
  type HostilePostgres,
  message,
  type Phase,
  row,
  send,
  startHostilePostgres,
} from "../../../tests/support/hostile-postgres.ts";
import { until } from "../../../tests/support/until.ts";
import { copyQuery, queryFailure } from "../export/copy-query.ts";
import { RecordCounter } from "../export/record-counter.ts";
import { copyIn } from "../load/target/copy-in.ts";
import { readCredential } from "./credential-shape.ts";
import { drop } from "./farewell.ts";
import { logIn } from "./open-database.ts";
import { verifyCredential } from "./verify-credential.ts";

let hostile: HostilePostgres;
let folder: string;
beforeAll(async () => {
  hostile = await startHostilePostgres();
  folder = await mkdtemp(path.join(tmpdir(), "nodus-hostile-"));
}, 30_000);
afterEach(async () => {
  hostile.attack = null;
  await until("every connection is gone", () => hostile.open() === 0, { timeoutMs: 5_000 });
});
afterAll(async () => {
  await hostile?.close();
  await rm(folder, { recursive: true, force: true });
});

const EXCEPTIONS = new PrivateExceptions(["127.0.0.0/8"]);

function open(timeoutMs = 5_000): Promise<pg.Client> {
  const credential = readCredential("postgres", hostile.secret);
  if (credential.kind !== "database") throw new Error("the secret leads to no database");
  return logIn(credential.login, { exceptions: EXCEPTIONS, clock: systemClock }, { timeoutMs, applicationName: "t" });
}

/** Everything that is asked of a database: a statement, an export and a load. */
async function converse(signal: AbortSignal = new AbortController().signal): Promise<void> {
  const client = await open();
  const cut = () => drop(client, new Error("cut off"));
  signal.addEventListener("abort", cut);
  try {
    await client.query("select pg_backend_pid() as pid");
    const counter = new RecordCounter({ rows: 1_000, bytes: 100_000 }, { header: true });
    const file = path.join(folder, "result.csv");
    const ask = { sql: "select 1 as a", format: "csv", file, counter, timeoutMs: 5_000, clock: systemClock } as const;
    await copyQuery(client, { ...ask, signal });
    await copyIn(client, "copy t from stdin", Readable.from([Buffer.from("1\n"), Buffer.alloc(300_000, 0x31)]));
  } finally {
    signal.removeEventListener("abort", cut);
    drop(client);
  }
}

/** The word for how a conversation ends. */
async function endOf(attack: Attack, signal?: AbortSignal): Promise<string> {
  hostile.attack = attack;
  const error = await converse(signal).then(
    () => null,
    (e: unknown) => e,
  );
  if (error === null) return "fine";
  const { reason } = error as { reason?: string };
  return reason ?? queryFailure(error).word;
}

const PHASES: readonly Phase[] = ["startup", "statement", "describe", "copyOut", "copyIn", "rowsIn"];
const LOST = /^(database_refused|connection_lost|query_failed|row_limit|duplicate_columns)$/;
/** Random bytes can happen to be right, or a refusal of the login. */
const ANY = new RegExp(`${LOST.source}|^(fine|credentials_rejected|unreachable|query_timeout)$`);
const GIBIBYTES = Buffer.from([0x44, 0x7f, 0xff, 0xff, 0xff]);

test("an honest conversation comes to its end", async () => {
  await converse();
});

const WRONG: Record<string, Buffer[]> = {
  "a description of -1 columns": [message("T", "\xff\xff")],
  "a row that nobody asked for": [row("1")],
  "rows that are not as their columns": [column("a"), message("D", "\x7f\xff")],
  "a row with a length that leads back": [column("a"), message("D", "\0\x01\xff\xff\xff\xf0")],
  "an error without its end": [message("E", "Mabc")],
  "a notice without its end": [message("N", "M")],
  "a message shorter than its length": [Buffer.from([0x44, 0, 0, 0, 0])],
  "a message of two gibibytes": [GIBIBYTES, Buffer.alloc(1_000)],
  "a kind of message that there is not": [message("?", "abc")],
  "a second login": Array.from({ length: 7 }, () => message("R", "\0\0\0\x0bv=x")),
  "an end, and rows after it": [message("Z", "I"), column("a"), row("1"), message("C", "COPY 1\0")],
  "a column list of a copy that is not there": [message("H", "\0\x7f\xff")],
};

for (const [name, bytes] of Object.entries(WRONG))
  test(`${name} ends the conversation wherever it comes, and nothing else`, async () => {
    for (const at of PHASES) {
      const ending = new AbortController();
      const late = setTimeout(() => ending.abort(), 1_000); // some of it is only the beginning of an answer
      expect([at, await endOf({ at, act: send(...bytes) }, ending.signal)]).toEqual([at, expect.stringMatching(LOST)]);
      clearTimeout(late);
    }
  });

test("rows without end are cut off after what a connection may say", async () => {
  for (const at of ["statement", "describe", "copyIn"] as const) {
    const flood = endlessly(row("1".repeat(50)), column("a"));
    expect([at, await endOf({ at, act: flood.act })]).toEqual([at, "connection_lost"]);
    // What the kernel and TLS keep on both sides comes on top.
    expect(flood.sent.bytes).toBeLessThan(LIMITS.connectionSaidBytes + 16 * 1024 * 1024);
  }
});

test("empty rows, notices and status without end are cut off within a copy too", async () => {
  for (const bytes of [message("d"), message("N", "Mx\0\0"), message("S", "a\0b\0")]) {
    const flood = endlessly(bytes, message("H", "\0\0\0"));
    expect(await endOf({ at: "copyOut", act: flood.act })).toBe("connection_lost");
  }
});

test("a credential is not verified by a database that answers nonsense, or nothing", async () => {
  const verify = () =>
    verifyCredential(
      { exceptions: EXCEPTIONS, clock: systemClock, wandb: { origin: "https://127.0.0.1:1" } },
      readCredential("postgres", hostile.secret),
    );
  for (const at of ["startup", "statement"] as const)
    for (const bytes of [message("T", "\xff\xff"), message("E", "Mabc"), GIBIBYTES]) {
      hostile.attack = { at, act: send(bytes) };
      await expect(verify()).rejects.toMatchObject({ reason: "database_refused" });
    }
  hostile.attack = { at: "statement", act: () => {} };
  await expect(verify()).rejects.toMatchObject({ reason: "timeout" });
}, 20_000);

test("copied rows without end are broken off at the export's limit", async () => {
  const flood = endlessly(message("d", "1\n"), message("H", "\0\0\0"));
  expect(await endOf({ at: "copyOut", act: flood.act })).toBe("row_limit");
});

test("a database that falls silent keeps nobody once the work is cut off", async () => {
  for (const at of PHASES.slice(1)) {
    const cut = new AbortController();
    setTimeout(() => cut.abort(), 100);
    expect([at, await endOf({ at, act: () => {} }, cut.signal)]).toEqual([at, "connection_lost"]);
  }
  hostile.attack = { at: "startup", act: () => {} };
  await expect(open(150)).rejects.toMatchObject({ reason: "timeout" });
});

test("any bytes at any place end in an answer", async () => {
  const kinds = fc.constantFrom(..."123ACDEGHIKNRSTZcdnst");
  const anyMessage = fc
    .tuple(kinds, fc.uint8Array({ maxLength: 40 }))
    .map(([kind, body]) => message(kind, Buffer.from(body)));
  const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));
  const bytes = fc.array(fc.oneof(anyMessage, anyBytes, fc.constant(column("a"))), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...PHASES), bytes, async (at, parts) => {
      const act: Attack["act"] = (client) => client.end(Buffer.concat(parts));
      expect(await endOf({ at, act })).toMatch(ANY);
    }),
    { numRuns: 300 },
  );
}, 60_000);
