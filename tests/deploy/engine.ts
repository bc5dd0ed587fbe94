import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { composeServices } from "../support/deploy-files.ts";

/** Something outside this project is missing; the message names it. */
export class Unavailable extends Error {}

const SHOWN_LINES = 40;

/** What a program printed on both its outputs. Fails with the last lines of it when the program does. */
export async function run(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  timeoutMs = 120_000,
): Promise<string> {
  const child = spawn(program, args, {
    cwd: projectFile(),
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  const status = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? signal));
  });
  if (status === 0) return output;
  const tail = output.trimEnd().split("\n").slice(-SHOWN_LINES).join("\n");
  throw new Error(`"${program} ${args.slice(0, 6).join(" ")}" ended with ${status}:\n${tail}`);
}

/** The command that compose is here. Throws `Unavailable` without a Docker engine that answers or without compose. */
export async function findCompose(): Promise<readonly [string, ...string[]]> {
  const answers = (program: string, ...args: string[]) =>
    run(program, args, {}, 20_000).then(
      () => true,
      () => false, // not installed, or nothing answers it: what is missing is named below
    );
  if (!(await answers("docker", "version"))) throw new Unavailable("no Docker engine answers the command docker");
  if (await answers("docker", "compose", "version")) return ["docker", "compose"];
  if (await answers("docker-compose", "version")) return ["docker-compose"];
  throw new Unavailable("neither the plugin docker compose nor the program docker-compose is installed");
}

/** Throws `Unavailable` naming the first image that others make and that is neither here nor can be pulled. */
export async function haveBaseImages(): Promise<void> {
  const dockerfile = readFileSync(projectFile("infra", "deploy", "Dockerfile"), "utf8");
  const built = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image!);
  const { postgres, redis } = composeServices();
  for (const image of new Set([...built, postgres!.image, redis!.image])) {
    const here = run("docker", ["image", "inspect", image]);
    const had = here.catch(() => run("docker", ["pull", "-q", image], {}, 600_000));
    await had.catch((error: Error) => {
      throw new Unavailable(
        `the image ${image} is not here and cannot be pulled (${error.message.split("\n").at(-1)})`,
      );
    });
  }
}
