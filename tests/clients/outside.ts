import { gzipSync } from "node:zlib";
import { tarOf } from "../support/archive-samples.ts";
import type { Issued } from "../support/authority.ts";
import { answer, playGithub, playHub, sources } from "../support/source-server.ts";
import { startTlsPostgres } from "../support/tls-postgres.ts";

const FILE_TEXT = "a,b\n1,2\n3,4\n";
const REPOSITORY = "team/code";
const DATASET = "team/set";

/** Servers of this machine in the place of the outside world, all under one certificate authority. */
export interface Outside {
  readonly caPem: string;
  /** For a receiver of webhooks on `localhost`. */
  readonly receiver: Issued;
  /** Settings of a platform that finds its services here. Made-up imports ask them too, and nobody else. */
  readonly services: Readonly<Record<string, string>>;
  /** What checks may use of it. */
  readonly facts: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts a file server, one that answers as GitHub, one that answers as Hugging Face, and a customer's PostgreSQL. */
export async function openOutside(): Promise<Outside> {
  const internet = await sources();
  try {
    const [files, github, codeload, hub, cdn] = [
      await internet.serve(),
      await internet.serve(),
      await internet.serve(),
      await internet.serve(),
      await internet.serve(),
    ];
    files.routes.set("/rows.csv", answer(FILE_TEXT));
    const repository = await tarOf([
      { path: "top/", type: "directory" },
      { path: "top/say.sh", content: "echo imported" },
    ]);
    playGithub(github, codeload, REPOSITORY, gzipSync(repository));
    playHub(hub, cdn, DATASET, { "data/train.csv": "a,b\n1,2\n", "data/big.jsonl": `{"text":"${"x".repeat(500)}"}\n` });
    const receiver = await internet.authority.issue(["localhost"]);
    const database = await startTlsPostgres();
    return {
      caPem: internet.authority.caPem,
      receiver,
      services: { NODUS_GITHUB_API_URL: github.origin, NODUS_HUGGING_FACE_URL: hub.origin },
      facts: {
        ...{ fileUrl: `${files.origin}/rows.csv`, fileText: FILE_TEXT, repository: REPOSITORY, dataset: DATASET },
        databaseSecret: database.secret(),
        wrongDatabaseSecret: database.secret({ password: "wrong" }),
      },
      close: async () => {
        await database.close();
        await internet.close();
      },
    };
  } catch (error) {
    await internet.close();
    throw error;
  }
}
