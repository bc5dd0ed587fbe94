import { Argument, Command } from "commander";
import { environmentFor, readSettings } from "./infra/telemetry/environment.ts";
import { nodeProblem } from "./infra/telemetry/node-version.ts";
import { DEFAULT_ORIGIN, type Role, SUBGRAPHS, type SubgraphName } from "./infra/telemetry/setting-table.ts";
import { buildVersion } from "./roles/build-version.ts";

const SETTINGS_HELP = `
Settings are environment variables; "nodus settings" lists all of them.
  submit, logs, ls, cancel     NODUS_API_KEY, and NODUS_BASE_URL where the platform is not at ${DEFAULT_ORIGIN}
  keys, accounts, migrate      NODUS_DATA_DIR of the platform (.nodus), or its DATABASE_URL
  up                           PORT, HOST, NODUS_DATA_DIR and many more`;

const problem = nodeProblem(process.versions.node);
if (problem) {
  process.stderr.write(`${problem}\n`);
  process.exit(2);
}

/** The command line and the one place where everything is put together. Commands load what they need when they run. */
const program = new Command("nodus")
  .description("Runs AI work on whatever capacity fits.")
  .version(buildVersion())
  .showHelpAfterError("Add --help to the command to see what it takes.")
  .addHelpText("after", SETTINGS_HELP);

program
  .command("up")
  .description(
    "the whole platform in one process, or the roles that NODUS_ROLES lists; start.mjs without a command does this",
  )
  .action(async () => {
    const { up } = await import("./roles/up.ts");
    await up(readSettings());
  });

const serve = async (role: Role) => {
  const { up } = await import("./roles/up.ts");
  await up(readSettings(environmentFor(role)));
};
program
  .command("gateway")
  .description("what clients talk to, as a process of its own: GraphQL, streams and REST")
  .action(() => serve("gateway"));
program
  .command("subgraph")
  .description("one part of the graph as a process of its own")
  .addArgument(new Argument("<name>", "which part").choices(SUBGRAPHS))
  .action((name: SubgraphName) => serve(name));
program
  .command("worker")
  .description("jobs, the relay and the reconcilers as a process of its own")
  .action(() => serve("worker"));
program
  .command("intake")
  .description("what hosts talk to, as a process of its own")
  .action(() => serve("intake"));
program
  .command("host-agent")
  .description("keep this machine's host agent running")
  .action(() => serve("host-agent"));

program
  .command("migrate")
  .description("bring the database's tables up to date, or with --print show what the code needs beyond them")
  .option("--print", "print SQL instead of running it")
  .action(async (options: { print?: boolean }) => {
    const { migrateDatabase } = await import("./roles/migrate.ts");
    await migrateDatabase(readSettings(), options);
  });

program
  .command("settings")
  .description("list every setting, what it is when nobody sets it, and what it means")
  .action(async () => {
    const { settingsText } = await import("./cli/settings.ts");
    process.stdout.write(settingsText());
  });

// start.mjs does these itself, before there is a program: they are here for the help.
for (const [name, description] of [
  ["install", "install the packages that the lock file names, where they are not there"],
  ["build", "compile the sources into dist/; every command does so first"],
  ["test [filters...]", "run the tests, or those of the files that the filters and Vitest's options choose"],
] as const)
  program
    .command(name)
    .description(description)
    .allowUnknownOption()
    .action(() => program.error(`Run it with start.mjs in the sources: node start.mjs ${name}`));

program
  .command("schema")
  .description("print the subgraphs' schemas and the supergraph into schema/")
  .action(async () => {
    const { writeSchemas } = await import("./roles/schema.ts");
    writeSchemas();
  });

program
  .command("bench")
  .description("measure the platform beside the bare minimum of the same work; needs the development packages")
  .option("--row <names...>", "only these rows")
  .option("--profile <folder>", "write processor profiles of the measured processes there")
  .action(async (options: { row?: string[]; profile?: string }) => {
    const { bench } = await import("./tests/load/bench.ts");
    await bench(options);
  });

const { addUserCommands } = await import("./cli/user-commands.ts");
addUserCommands(program);
const { addOperatorCommands } = await import("./cli/operator-commands.ts");
addOperatorCommands(program);

try {
  await program.parseAsync();
} catch (error) {
  // Refusals, settings and lost platforms are told in a sentence; only a fault of ours shows its stack.
  const { explain } = await import("./cli/explain.ts");
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 2;
}
