import { gzipSync } from "node:zlib";
import type { Actor } from "../../infra/kernel/actor.ts";
import type { JobContext } from "../../infra/queue/implement-job.ts";
import { admitImport } from "../../subgraphs/data/asset/import/admit-import.ts";
import {
  type ImportFields,
  readSourceImport,
  requireMembersOf,
} from "../../subgraphs/data/asset/import/read-import.ts";
import { GithubAccounts } from "../../subgraphs/data/github-account/github-accounts.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { fetchImport, type ImportDeps } from "../../workers/data/fetch-import.ts";
import { importAssetJob } from "../../workers/data/import-asset.ts";
import { administrator } from "./actors.ts";
import { tarOf } from "./archive-samples.ts";
import { assetFixture } from "./asset-fixture.ts";
import { jobContext } from "./jobs.ts";
import { playGithub, playHub, type SourceServer, sources } from "./source-server.ts";

/** The files that the fixture's GitHub and Hugging Face have, beside what no import without patterns takes. */
export const HUB_FILES = {
  "data/train.csv": "a,b\n1,2\n",
  "data/big.jsonl": `{"text":"${"x".repeat(5_000)}"}\n`,
  "README.md": "# words",
  "img/cat.PNG": "not really a picture",
};

/** For a process that is not about to stop. */
const staying = new AbortController().signal;

/** The asset fixture, with servers of this machine in the place of the internet, and the job that fetches from them. */
export async function importFixture() {
  const [assets, internet] = await Promise.all([assetFixture(), sources()]);
  const [github, codeload, hub, cdn, web] = await Promise.all(Array.from({ length: 5 }, () => internet.serve()));
  const repository = await tarOf([
    { path: "team-code-aaaaaaa/", type: "directory" },
    { path: "team-code-aaaaaaa/main.py", content: "print(1)" },
    { path: "team-code-aaaaaaa/lib/run.sh", content: "#!/bin/sh", executable: true },
  ]);
  playGithub(github!, codeload!, "team/code", gzipSync(repository));
  playHub(hub!, cdn!, "team/set", HUB_FILES);
  const box = new SecretBox({ id: "test", key: Buffer.alloc(32, 7) });
  const { db, clock } = assets;
  const logged: unknown[] = [];
  const note = (...said: unknown[]) => void logged.push(said);
  const logger = { info: note, warn: note, error: note } as unknown as ImportDeps["logger"];
  const deps = (over: Partial<ImportDeps> = {}): ImportDeps => ({
    ...assets.deps(),
    ...{ db, clock, logger },
    fetch: internet.fetch(),
    origins: { github: github!.origin, huggingFace: hub!.origin },
    githubAccounts: new GithubAccounts(box),
    ...over,
  });
  const admit = (actor: Actor, fields: ImportFields) => {
    requireMembersOf(fields);
    return admitImport({ db, box, limits: deps().limits }, actor, readSourceImport(fields), clock.now());
  };
  const run = (assetId: string, over: Partial<ImportDeps> = {}, context: Partial<JobContext> = {}) =>
    importAssetJob(deps(over), box, staying).body({ assetId }, jobContext({ db, clock }, context));
  return {
    ...assets,
    ...{ internet, box, logged, deps, admit, run },
    /** What was asked of each server; the web's paths belong to the test. */
    servers: { github: github!, codeload: codeload!, hub: hub!, cdn: cdn!, web: web! } satisfies Record<
      string,
      SourceServer
    >,
    /** Admits an import and does it, as the job or (with a token) the process that has the token does. */
    import: async (actor: Actor, fields: ImportFields, over: Partial<ImportDeps> = {}) => {
      const { asset, claim } = await admit(actor, fields);
      const stopping = new AbortController().signal;
      if (claim) await fetchImport(deps(over), claim, { token: fields.token!, stopping });
      else await run(asset.id, over);
      return assets.get(actor, asset.id);
    },
    admin: administrator,
    async close(): Promise<void> {
      await Promise.all([assets.close(), internet.close()]);
    },
  };
}

export type ImportFixture = Awaited<ReturnType<typeof importFixture>>;
