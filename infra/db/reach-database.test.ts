import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTlsPostgres, type TlsPostgres } from "../../tests/support/tls-postgres.ts";
import { reachDatabase } from "./reach-database.ts";

let server: TlsPostgres;
const folder = mkdtempSync(path.join(tmpdir(), "nodus-ca-"));
const caFile = path.join(folder, "ca.pem");

beforeAll(async () => {
  server = await startTlsPostgres();
  writeFileSync(caFile, server.caPem);
}, 60_000);
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const verified = (change: Parameters<TlsPostgres["url"]>[0] = {}) =>
  server.url({ query: `?sslmode=verify-full&sslrootcert=${encodeURIComponent(caFile)}`, ...change });

test("a server whose certificate's authority is named is reached", async () => {
  await reachDatabase(verified());
});

test.each([
  ["no authority is named for", () => server.url({ query: "?sslmode=verify-full" }), "sslrootcert"],
  ["is given a wrong password", () => verified({ password: "guessed" }), "Correct the user or the password."],
  ["has no such database", () => verified({ database: "nothing" }), 'has no database "nothing"'],
])("a server that %s is told by a sentence with what to do", async (_, url, sentence) => {
  await expectSentence(url(), sentence);
});

test("a server whose certificate is for another host is told by a sentence with what to do", async () => {
  await server.useCertificate(await server.authority.issue(["db.example.com"]));
  // The server reads its files again some moments after it was told to.
  await expect.poll(() => reachDatabase(verified()).catch((error: Error) => error.message)).toContain("another host");
  await expectSentence(verified(), "Use a name that it is for.");
});

async function expectSentence(url: string, sentence: string): Promise<void> {
  const told: Error = await reachDatabase(url).then(
    () => expect.fail("it was reached"),
    (error) => error,
  );
  expect(told).toMatchObject({ name: "UnreachableServer", message: expect.stringMatching(/^DATABASE_URL: /) });
  expect(told.message).toContain(sentence);
  expect(told.message).not.toContain("p@ss");
}
