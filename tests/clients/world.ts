import { writeFileSync } from "node:fs";
import path from "node:path";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { ADMIN_KEY, Platform } from "../support/platform.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { answer, sources } from "../support/source-server.ts";
import { startTlsPostgres } from "../support/tls-postgres.ts";

const FILE_TEXT = "a,b\n1,2\n3,4\n";

/** A platform, and servers of this machine that stand for the outside world. */
export interface World {
  readonly platform: Platform;
  readonly apiKey: string;
  /** What the checks in Python are told about the outside. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where checks may put files; removed with everything else. */
  readonly folder: string;
  close(): Promise<void>;
}

/** Starts all of it on a fresh data folder. Needs the `openssl` program. */
export async function openWorld(): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const one of closers.splice(0).reverse()) await one();
  };
  try {
    const internet = await sources();
    closers.push(() => internet.close());
    const files = await internet.serve();
    files.routes.set("/rows.csv", answer(FILE_TEXT));
    const database = await startTlsPostgres();
    closers.push(() => database.close());

    const folder = newDataFolder();
    const put = (name: string, text: string) => {
      writeFileSync(path.join(folder, name), text, { mode: 0o644 });
      return path.join(folder, name);
    };
    const receiver = await internet.authority.issue(["localhost"]);
    // Made-up imports go to a server of this machine, not to these services.
    const services = { NODUS_GITHUB_API_URL: files.origin, NODUS_HUGGING_FACE_URL: files.origin };
    const trust = {
      NODE_EXTRA_CA_CERTS: put("authority.pem", internet.authority.caPem),
      NODUS_ALLOW_PRIVATE_HOSTS: "localhost",
    };
    const platform = await Platform.start({ ...services, ...trust }, { dataDir: folder });
    closers.push(() => platform.dispose());
    const settings = {
      fileUrl: `${files.origin}/rows.csv`,
      fileText: FILE_TEXT,
      databaseSecret: database.secret(),
      wrongDatabaseSecret: database.secret({ password: "wrong" }),
      certFile: put("receiver.pem", receiver.certPem),
      keyFile: put("receiver.key", receiver.keyPem),
      verifyExample: projectFile("docs", "examples", "verify-webhook.py"),
    };
    return { platform, apiKey: ADMIN_KEY, settings, folder, close };
  } catch (error) {
    await close();
    throw error;
  }
}
