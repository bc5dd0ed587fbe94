import { Argument, Command } from "commander";
import { environmentFor, readSettings } from "./infra/telemetry/environment.ts";
import { type Role, SUBGRAPHS, type SubgraphName } from "./infra/telemetry/setting-table.ts";
import { buildVersion } from "./roles/build-version.ts";

/** The command line and the one place where everything is put together. Commands load what they need when they run. */
const program = new Command("nodus")
  .description("Runs AI work on whatever capacity fits.")
  .version(buildVersion())
  .showHelpAfterError();

program
  .command("up")
  .description("the whole platform in one process, or the roles that NODUS_ROLES lists")
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
