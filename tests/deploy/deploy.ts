import { findCompose, haveBaseImages, Unavailable } from "./engine.ts";
import { JOURNEYS } from "./journeys.ts";
import { Project } from "./project.ts";

const USAGE =
  "usage: npm run test:deploy [-- [--only TEXT] OPTION…]; options are more of docker build's, such as --network=host";
const say = (line: string) => process.stdout.write(`${line}\n`);

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  if (!(error instanceof Unavailable)) throw error;
  say(`skipped: ${error.message}`);
  return 0;
});

/** The exit code: 0 when every journey held, 1 when one did not, 2 when asked for something else. */
async function main(args: string[]): Promise<number> {
  const only = args[0] === "--only" ? args.splice(0, 2)[1] : "";
  if (only === undefined || !args.every((arg) => arg.startsWith("--"))) {
    say(USAGE);
    return 2;
  }
  const compose = await findCompose();
  await haveBaseImages();
  const project = new Project(compose);
  leaveNothingBehind(project);
  let failures = 0;
  try {
    say("building the image …");
    await project.build(args);
    say(`starting ${project.name} with ${compose.join(" ")} …`);
    await project.up();
    const client = await project.client();
    for (const [name, journey] of Object.entries(JOURNEYS).filter(([name]) => name.includes(only))) {
      const startedAt = performance.now();
      const failure = await journey(project, client)
        .then(() => project.healthy())
        .catch((error: Error) => error);
      say(`${failure ? "FAILED" : "held"}  ${name} (${((performance.now() - startedAt) / 1000).toFixed(0)} s)`);
      if (!failure) continue;
      failures += 1;
      say(`${failure.stack}\n${await project.compose(["logs", "--tail", "15"])}`);
    }
  } finally {
    const left = await project.down();
    if (left) {
      say(`FAILED  everything is removed; left: ${left}`);
      failures += 1;
    }
  }
  say(`${failures} failed`);
  return failures === 0 ? 0 : 1;
}

/** Whoever is told to stop removes what was started first. */
function leaveNothingBehind(project: Project): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => void project.down().finally(() => process.exit(code)));
}
