import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { composeProcesses, composeServices } from "../support/deploy-files.ts";
import { PlatformClient } from "../support/platform-client.ts";
import { freePort } from "../support/platform-place.ts";
import { until } from "../support/until.ts";
import { run } from "./engine.ts";

const HEALTHY_MS = 240_000;
/** What compose 1 does not know: it has no use for the first, and without the second readers of tables are less confined. */
const UNKNOWN_TO_COMPOSE_1 = [/^name:.*\n/m, /, "systempaths=unconfined"/];

/** Our own services, which all run the image that is tested. */
export const OWN_SERVICES = Object.keys(composeProcesses());
export const ALL_SERVICES = Object.keys(composeServices());

/** The containers of `compose.yaml` under a name, a port and secrets of their own. */
export class Project {
  readonly name = `nodus-test-${randomBytes(4).toString("hex")}`;
  readonly secrets = { password: randomBytes(16).toString("hex"), masterKey: randomBytes(32).toString("base64") };
  readonly #folder = mkdtempSync(path.join(tmpdir(), "nodus-deploy-"));
  readonly #compose: readonly [string, ...string[]];
  #image = this.name;
  #port = 0;

  constructor(compose: readonly [string, ...string[]]) {
    this.#compose = compose;
    let text = readFileSync(projectFile("infra", "deploy", "compose.yaml"), "utf8");
    if (compose[0] === "docker-compose") for (const part of UNKNOWN_TO_COMPOSE_1) text = text.replace(part, "");
    writeFileSync(this.#file, text);
  }

  get #file(): string {
    return path.join(this.#folder, "compose.yaml");
  }

  /** Builds the image; `options` are more of `docker build`'s. */
  async build(options: readonly string[]): Promise<void> {
    const dockerfile = projectFile("infra", "deploy", "Dockerfile");
    await run("docker", ["build", "-t", this.#image, "-f", dockerfile, ...options, "."], {}, 1_200_000);
  }

  /** Gives the image another name and content, as a release does, and brings every container to it. */
  async release(): Promise<void> {
    const next = `${this.name}:next`;
    const made = await run("docker", ["create", this.#image]);
    const container = made.trim().split("\n").at(-1)!;
    await run("docker", ["commit", container, next]);
    await run("docker", ["rm", container]);
    this.#image = next;
    await this.up();
  }

  /** Starts what does not run, and waits until everything is healthy. */
  async up(...services: string[]): Promise<void> {
    this.#port ||= await freePort();
    await this.compose(["up", "-d", ...services], 400_000);
    await this.healthy();
  }

  async healthy(): Promise<void> {
    await until(
      "every container is healthy",
      async () => {
        const ids = await Promise.all(ALL_SERVICES.map((service) => this.containerOf(service)));
        if (ids.includes("")) return false;
        const states = await run("docker", ["inspect", "-f", "{{.State.Health.Status}}", ...ids]);
        return states
          .trim()
          .split("\n")
          .every((state) => state === "healthy");
      },
      { timeoutMs: HEALTHY_MS, everyMs: 1_000 },
    );
  }

  /** A user of the platform with a key that is minted as an operator does it. */
  async client(): Promise<PlatformClient> {
    const said = await this.compose(["exec", "-T", "gateway", "node", "/nodus/dist/nodus.js", "keys", "mint"]);
    const key = /nk_[\w-]+/.exec(said);
    if (!key) throw new Error(`no key was minted: ${said}`);
    return new PlatformClient(`http://127.0.0.1:${this.#port}`, key[0]);
  }

  /** Kills a service's program with -9. The engine starts our own again; others are started as an operator would. */
  async kill(service: string): Promise<void> {
    const container = await this.containerOf(service);
    if (OWN_SERVICES.includes(service)) {
      // The program is the one child of the container's first process, which ends with it.
      await run("docker", ["exec", container, "sh", "-c", "kill -9 $(cat /proc/1/task/1/children)"]);
      return;
    }
    await run("docker", ["kill", "-s", "KILL", container]);
    await run("docker", ["start", container]);
  }

  /** What compose says to a command. */
  compose(args: readonly string[], timeoutMs = 120_000): Promise<string> {
    const [program, ...first] = this.#compose;
    const project = ["-p", this.name, "--project-directory", projectFile("infra", "deploy"), "-f", this.#file];
    const environment = {
      POSTGRES_PASSWORD: this.secrets.password,
      NODUS_MASTER_KEY: this.secrets.masterKey,
      NODUS_IMAGE: this.#image,
      NODUS_PORT: String(this.#port),
      NODUS_PUBLIC_URL: `http://127.0.0.1:${this.#port}`,
    };
    return run(program, [...first, ...project, ...args], environment, timeoutMs);
  }

  /** The id of a service's container; empty without one. */
  async containerOf(service: string): Promise<string> {
    const labels = [`com.docker.compose.project=${this.name}`, `com.docker.compose.service=${service}`];
    return (await run("docker", ["ps", "-aq", ...labels.flatMap((label) => ["--filter", `label=${label}`])])).trim();
  }

  /** Removes everything, and says what is left all the same: nothing, one hopes. */
  async down(): Promise<string> {
    await this.compose(["down", "-v", "--remove-orphans"], 200_000);
    for (const image of new Set([this.name, this.#image])) await run("docker", ["rmi", "-f", image]);
    rmSync(this.#folder, { recursive: true, force: true });
    const mine = ["--filter", `label=com.docker.compose.project=${this.name}`];
    const lists = [
      ["ps", "-aq"],
      ["volume", "ls", "-q"],
      ["network", "ls", "-q"],
    ];
    const left = await Promise.all(lists.map((list) => run("docker", [...list, ...mine])));
    return left.join("").trim();
  }
}
