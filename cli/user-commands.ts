import { type Command, Option } from "commander";
import { readSettings } from "../infra/telemetry/environment.ts";
import { DEFAULT_ORIGIN } from "../infra/telemetry/setting-table.ts";
import { WORKLOAD_STATES } from "../subgraphs/compute/workload/workload.machine.ts";
import { type Client, ClientError, connect } from "./client.ts";
import { amount, dollars, filled, instant, pair, wholeNumber, wordsOf } from "./options.ts";

/** What a list may be narrowed to. */
const LISTED = ["active", "terminal", ...WORKLOAD_STATES] as const;

/** Commands of users: thin clients of the graph, with NODUS_BASE_URL and NODUS_API_KEY. */
export function addUserCommands(program: Command): void {
  // What follows the command's name is the command's, with `--` before it or without.
  program.enablePositionalOptions();
  program
    .command("submit")
    .passThroughOptions()
    .description("submit a workload: nodus submit [options] -- command …")
    .argument("<command...>", "the command and its arguments, after --")
    .option("--name <name>", "display name")
    .option("--image <image>", "container image")
    .option("--asset <id>", "asset with the program's files")
    .option("--input <name=asset...>", "datasets, each NAME=ASSET_ID", pair)
    .option("--output <name=path...>", "results, each NAME=PATH", pair)
    .option("--gpu <family>", "GPU family, such as H100")
    .addOption(new Option("--gpu-count <n>", "GPUs on one machine").choices(["1", "2", "4", "8"]))
    .addOption(new Option("--cpu", "a machine without GPU").conflicts(["gpu", "gpuCount"]))
    .option("--memory-gb <n>", "memory of each GPU, or with --cpu of the machine", amount)
    .option("--vcpus <n>", "CPU cores", amount)
    .option("--max-cost <usd>", "most that it may cost, in US dollars", dollars)
    .option("--complete-by <time>", "RFC 3339 deadline", instant)
    .option("--secret <name...>", "secrets, as NODUS_SECRET_<name>")
    .option("--allow <host...>", "hosts that it may reach")
    .option("--key <key>", "idempotency key; a fresh one unless given", filled)
    .option("-f, --follow", "show its output until it ends")
    .action(async (command: string[], options) => {
      const { submit } = await import("./submit.ts");
      await withClient((client) => submit(client, command, options));
    });

  program
    .command("logs")
    .description("show a workload's output")
    .argument("<workload>", "its id")
    .option("-f, --follow", "go on until it ends")
    .action(async (workloadId: string, options: { follow?: boolean }) => {
      const { followLogs, showLogs } = await import("./logs.ts");
      const show = options.follow ? followLogs : showLogs;
      await withClient((client) => show(client, workloadId));
    });

  program
    .command("ls")
    .description("list workloads, newest first")
    .option("--status <words>", "comma-separated statuses, active or terminal", wordsOf(LISTED))
    .option("--limit <n>", "how many, at most 100", wholeNumber(1, 100), 20)
    .action(async (options: { status?: string[]; limit: number }) => {
      const { list } = await import("./list.ts");
      await withClient((client) => list(client, options));
    });

  program
    .command("cancel")
    .description("cancel a workload and wait until it has ended")
    .argument("<workload>", "its id")
    .option("--no-wait", "ask only")
    .action(async (workloadId: string, options: { wait: boolean }) => {
      const { cancel } = await import("./cancel.ts");
      await withClient((client) => cancel(client, workloadId, options.wait));
    });
}

/** What a shell makes of a program that SIGPIPE ended. */
const READER_GONE = 141;

async function withClient(work: (client: Client) => Promise<void>): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(READER_GONE); // such as `head`, which has read enough
    throw error;
  });
  const settings = readSettings();
  const baseUrl = (settings.clientBaseUrl ?? DEFAULT_ORIGIN).replace(/\/+$/, "");
  if (!settings.clientApiKey) throw new ClientError("Set NODUS_API_KEY to an API key (nk_…).");
  const client = connect(baseUrl, settings.clientApiKey);
  try {
    await work(client);
  } finally {
    await client.close();
  }
}
