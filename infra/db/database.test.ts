import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { OutboxRow } from "./outbox.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase([OutboxRow]);
  await database.db.sql("create table note (id int primary key, text text not null)");
}, 60_000);
beforeEach(() => database.db.sql("truncate note, infra.outbox"));
afterAll(() => database.close());

const notes = async () => (await database.db.sql<{ id: number }>("select id from note order by id")).map((n) => n.id);

test("statements of one turn each get their own answer, and one that fails fails alone", async () => {
  const { db } = database;
  const asked = Array.from({ length: 40 }, (_, i) =>
    i % 7 === 3 ? db.sql("select 1 / $1::int as n", [0]) : db.sql<{ n: number }>("select $1::int as n", [i]),
  );
  const answers = await Promise.allSettled(asked);
  for (const [i, answer] of answers.entries()) {
    if (i % 7 === 3) expect(answer).toMatchObject({ status: "rejected", reason: { code: "22012" } });
    else expect(answer).toMatchObject({ status: "fulfilled", value: [{ n: i }] });
  }
}, 20_000);

test("statements of one turn share connections, so that many of them need few", async () => {
  const asked = Array.from({ length: 8 }, () => database.db.sql<{ pid: number }>("select pg_backend_pid() as pid"));
  const pids = (await Promise.all(asked)).map(([row]) => row!.pid);
  expect(new Set(pids).size).toBe(1);
}, 20_000);

test("a value that cannot be sent fails its statement, and the connection goes on", async () => {
  const { db } = database;
  const unsendable = {
    toPostgres: () => {
      throw new Error("not a value");
    },
  };
  const answers = await Promise.allSettled([
    db.sql("select $1::text", [unsendable]),
    db.sql("select $1::int as n", [1]),
  ]);
  expect(answers[0]).toMatchObject({ status: "rejected", reason: { message: "not a value" } });
  expect(answers[1]).toMatchObject({ status: "fulfilled", value: [{ n: 1 }] });
}, 20_000);

test("a connection that is lost fails what was on it, and nothing after", async () => {
  const { db } = database;
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const lost = Promise.allSettled([db.sql("select pg_sleep(30), $1::int", [1]), db.sql("select $1::int as n", [2])]);
  await expect
    .poll(async () => {
      const { rowCount } = await admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%' and datname = current_database()",
      );
      return rowCount;
    })
    .toBe(1);
  expect((await lost).map((end) => end.status)).toEqual(["rejected", "rejected"]);
  expect(await db.sql("select $1::int as n", [3])).toEqual([{ n: 3 }]);
  await admin.end();
}, 20_000);

test("a command is committed as a whole, or nothing of it is", async () => {
  const { db } = database;
  const insert = "insert into note values ($1, $2)";
  await db.command(async (tx) => {
    await tx.sql(insert, [1, "a"]);
    await tx.sql(insert, [2, "b"]);
  });
  const broken = db.command(async (tx) => {
    await tx.sql(insert, [3, "c"]);
    throw new Error("thought better of it");
  });
  await expect(broken).rejects.toThrow("thought better of it");
  await expect(db.command((tx) => tx.sql(insert, [1, "again"]))).rejects.toMatchObject({ code: "23505" });
  await db.command(async () => {});
  expect(await notes()).toEqual([1, 2]);
}, 20_000);

test("a last statement is committed with what came before it, and its failure undoes all", async () => {
  const { db } = database;
  const insert = "insert into note values ($1, $2) returning id";
  const woken: string[] = [];
  db.announceTo((topic) => woken.push(topic));
  const answer = await db.command(async (tx) => {
    tx.wake("committed");
    await tx.sql(insert, [1, "a"]);
    return tx.sqlAndCommit(insert, [2, "b"]);
  });
  expect(answer).toEqual([{ id: 2 }]);
  const broken = db.command(async (tx) => {
    tx.wake("undone");
    await tx.sql(insert, [3, "c"]);
    await tx.sqlAndCommit(insert, [1, "again"]);
  });
  await expect(broken).rejects.toMatchObject({ code: "23505" });
  const kept = db.command(async (tx) => {
    await tx.sql(insert, [4, "d"]);
    await tx.sqlAndCommit("select 1 / $1::int", [0]).catch(() => {});
  });
  await expect(kept).rejects.toThrow("nothing was committed");
  db.announceTo(() => {});
  expect(woken).toEqual(["committed"]);
  expect(await notes()).toEqual([1, 2]);
}, 20_000);

test("nothing can follow a command's last statement", async () => {
  const { db } = database;
  const insert = "insert into note values ($1, $2)";
  const late = db.command(async (tx) => {
    await tx.sqlAndCommit(insert, [1, "a"]);
    await tx.sql(insert, [2, "b"]);
  });
  await expect(late).rejects.toThrow("has had its last statement");
  const mixed = db.command(async (tx) => {
    await tx.em.findOne(OutboxRow, "x");
    await tx.sqlAndCommit(insert, [3, "c"]);
  });
  await expect(mixed).rejects.toThrow("unit of work");
  expect(await notes()).toEqual([1]);
}, 20_000);

test("a command that keeps a statement's failure to itself is told that nothing was committed", async () => {
  const { db } = database;
  const command = db.command(async (tx) => {
    await tx.sql("insert into note values ($1, $2)", [1, "a"]);
    await tx.sql("select 1 / $1::int", [0]).catch(() => {});
  });
  await expect(command).rejects.toThrow("nothing was committed");
  expect(await notes()).toEqual([]);
}, 20_000);

test("the unit of work is in the command's transaction, and is written with it", async () => {
  const { db } = database;
  const make = (id: string) => ({ id, job: "test", payload: {}, dueAt: new Date(), createdAt: new Date() });
  await db.command(async (tx) => {
    await tx.sql(
      "insert into infra.outbox (id, job, payload, due_at, created_at) values ('a', 'test', '{}', now(), now())",
      [],
    );
    expect(await tx.em.findOne(OutboxRow, "a")).toMatchObject({ job: "test" });
    tx.em.persist(tx.em.create(OutboxRow, make("b"))); // left to the end of the command
  });
  const undone = db.command(async (tx) => {
    await tx.em.persist(tx.em.create(OutboxRow, make("c"))).flush();
    throw new Error("no");
  });
  await expect(undone).rejects.toThrow("no");
  const rows = await db.sql<{ id: string }>("select id from infra.outbox order by id");
  expect(rows.map((row) => row.id)).toEqual(["a", "b"]);
}, 20_000);

test("a command that loses against another one runs again, and wakes others once, after its commit", async () => {
  const { db } = database;
  const woken: string[] = [];
  db.announceTo((topic) => woken.push(topic));
  let runs = 0;
  await db.command(async (tx) => {
    tx.wake(`topic ${++runs}`);
    await tx.sql("insert into note values ($1, $2)", [runs, "x"]);
    expect(woken).toEqual([]);
    if (runs < 3) throw Object.assign(new Error("could not serialize access"), { code: "40001" });
  });
  expect(woken).toEqual(["topic 3"]);
  expect(await notes()).toEqual([3]);
}, 20_000);

test("a command's wake-ups leave in one order, whichever of its statements was answered first", async () => {
  const { db } = database;
  const woken: string[] = [];
  db.announceTo((topic) => woken.push(topic));
  for (const topics of [
    ["a", "b", "c"],
    ["c", "b", "a", "b"],
  ])
    await db.command(async (tx) => {
      for (const topic of topics) tx.wake(topic);
    });
  expect(woken).toEqual(["a", "b", "c", "a", "b", "c"]);
}, 20_000);

test("a command that throws before it asks anything is undone like any other, and its connection goes on", async () => {
  const { db } = database;
  const commands = Array.from({ length: 15 }, () =>
    db.command(() => {
      throw new Error("at once");
    }),
  );
  for (const outcome of await Promise.allSettled(commands))
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: "at once" } });
  await db.command((tx) => tx.sql("insert into note values (1, 'x')"));
  expect(await notes()).toEqual([1]);
}, 20_000);

test("a wake-up that fails does not run the committed command again", async () => {
  const { db } = database;
  db.announceTo(() => {
    throw Object.assign(new Error("nobody there"), { code: "40001" });
  });
  let runs = 0;
  const command = db.command(async (tx) => {
    tx.wake("topic");
    await tx.sql("insert into note values ($1, 'x')", [++runs]);
  });
  await expect(command).rejects.toThrow("nobody there");
  db.announceTo(() => {});
  expect(await notes()).toEqual([1]);
}, 20_000);
