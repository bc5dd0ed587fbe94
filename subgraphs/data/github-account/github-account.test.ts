import { graphql } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOf } from "../../../infra/graphql/context.ts";
import { requestLoaders } from "../../../infra/graphql/loaders.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { type ImportFixture, importFixture } from "../../../tests/support/import-fixture.ts";
import { answer } from "../../../tests/support/source-server.ts";
import { buildDataSubgraph } from "../index.ts";
import { GithubAccount } from "./github-account.entity.ts";
import { GithubAccounts } from "./github-accounts.ts";

let f: ImportFixture;
const { schema } = buildDataSubgraph();
beforeAll(async () => {
  f = await importFixture();
}, 60_000);
afterAll(() => f?.close());

async function ask(actor: Actor, source: string) {
  const { fetch, origins } = f.deps();
  const data = { secretBox: f.box, sources: { fetch, origins } };
  const contextValue = {
    actor,
    requestId: "r",
    db: databaseOf(f.db, actor),
    clock: f.clock,
    loader: requestLoaders(),
    data,
  };
  const answered = await graphql({ schema, source, contextValue });
  return { ...answered, codes: answered.errors?.map((e) => e.extensions.code), text: JSON.stringify(answered) };
}

const connect = (token: string) =>
  `mutation { connectGithub(input: { token: "${token}" }) { account { login connectedAt } } }`;
const DISCONNECT = "mutation { disconnectGithub { account { login } } }";
const SHOW = "{ githubAccount { login connectedAt } }";
const user = (body: string, status = 200) => f.servers.github.routes.set("/user", answer(body, {}, status));

test("an administrator connects an account, everybody sees its name, and nobody its token", async () => {
  const admin = f.admin("team_gh");
  const member = { ...admin, role: "member" as const };
  user(JSON.stringify({ login: "octo" }));
  expect((await ask(member, SHOW)).data).toEqual({ githubAccount: null });
  expect((await ask(member, connect("ghp_one"))).codes).toEqual(["forbidden"]);
  const made = await ask(admin, connect("ghp_one"));
  expect(made.data).toMatchObject({ connectGithub: { account: { login: "octo" } } });
  expect(f.servers.github.seen.at(-1)).toEqual({ path: "/user", authorization: "Bearer ghp_one" });
  const shown = await ask(member, SHOW);
  expect(shown.data).toMatchObject({ githubAccount: { login: "octo" } });
  expect(made.text + shown.text).not.toContain("ghp_one");
  expect((await ask(f.admin("team_other"), SHOW)).data).toEqual({ githubAccount: null });
  const [row] = await f.db.rows(GithubAccount, "where t.tenant_id = $1", ["team_gh"]);
  expect(Buffer.concat([row!.ciphertext, row!.wrappedKey]).includes("ghp_one")).toBe(false);
});

test("a new token takes the place of the one before; after the disconnection there is none", async () => {
  const admin = f.admin("team_again");
  const accounts = new GithubAccounts(f.box);
  user(JSON.stringify({ login: "first" }));
  await ask(admin, connect("ghp_first"));
  user(JSON.stringify({ login: "second" }));
  await ask(admin, connect("ghp_second"));
  const reveal = () => accounts.reveal(f.db, { tenantId: admin.tenantId });
  expect(await reveal()).toEqual({ login: "second", token: "ghp_second" });
  expect((await ask({ ...admin, role: "member" }, DISCONNECT)).codes).toEqual(["forbidden"]);
  expect((await ask(admin, DISCONNECT)).data).toEqual({ disconnectGithub: { account: { login: "second" } } });
  expect(await reveal()).toBeNull();
  expect((await ask(admin, DISCONNECT)).codes).toEqual(["github_not_connected"]);
});

test.for<[string, string, number, string]>([
  ["does not know", "", 401, "github_token_refused"],
  ["does not let in", "", 403, "github_token_refused"],
  ["cannot judge just now", "", 502, "github_unreachable"],
  ["answers with something else about", "<html>", 200, "github_unreachable"],
  ["names nobody for", "{}", 200, "github_unreachable"],
])("a token that GitHub %s is not kept", async ([, body, status, code]) => {
  const admin = f.admin(`team_bad_${status}_${body.length}`);
  user(body, status);
  expect((await ask(admin, connect("ghp_bad"))).codes).toEqual([code]);
  expect((await ask(admin, SHOW)).data).toEqual({ githubAccount: null });
});

test("a token that could not be a header is refused before GitHub is asked", async () => {
  const before = f.servers.github.seen.length;
  expect((await ask(f.admin("team_bad"), connect("a b"))).codes).toEqual(["github_token_refused"]);
  expect((await ask(f.admin("team_bad"), connect("a\\r\\nX: 1"))).codes).toEqual(["github_token_refused"]);
  expect(f.servers.github.seen).toHaveLength(before);
});
