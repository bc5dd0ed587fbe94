import { type Command, Option } from "commander";
import { SCOPES } from "../infra/kernel/actor.ts";
import { readSettings } from "../infra/telemetry/environment.ts";
import { amount, dollars, instant, wholeNumber } from "./options.ts";

const jobs = (text: string) => (text === "cores" ? text : wholeNumber(1)(text));
const dollarsOrNone = (text: string) => (text === "none" ? text : dollars(text));

/** Commands of whoever hosts the platform: they work on the database itself, beside a running platform or without one. */
export function addOperatorCommands(program: Command): void {
  const keys = program.command("keys").description("API keys, and the key that secrets are encrypted with");
  keys
    .command("mint")
    .description("make a key; its text is printed once")
    .option("--team <id>", "the team; the only one unless given")
    .option("--email <address>", "the member that it belongs to; a key of the team unless given")
    .option("--name <name>", "what it is for", "command line")
    .addOption(new Option("--scope <scopes...>", "what it may be used for; everything unless given").choices(SCOPES))
    .option("--expires <time>", "RFC 3339 time after which it does nothing", instant)
    .action(async (options) => {
      const { mintKey } = await import("./keys.ts");
      await mintKey(readSettings(), options);
    });
  keys
    .command("ls")
    .description("list keys")
    .option("--team <id>", "the team; the only one unless given")
    .action(async (options) => {
      const { listKeys } = await import("./keys.ts");
      await listKeys(readSettings(), options);
    });
  keys
    .command("revoke")
    .description("revoke a key; its open streams end")
    .argument("<key>", "the key's id, key_…")
    .option("--team <id>", "the team; the only one unless given")
    .action(async (keyId: string, options) => {
      const { revokeKey } = await import("./keys.ts");
      await revokeKey(readSettings(), keyId, options);
    });

  keys
    .command("rotate")
    .description("encrypt all secrets under a new master key; may be interrupted and run again")
    .action(async () => {
      const { rotateKeys } = await import("./rotate-keys.ts");
      await rotateKeys(readSettings());
    });

  const accounts = program.command("accounts").description("teams' money and limits");
  accounts
    .command("show")
    .description("show a team's account")
    .option("--team <id>", "the team; the only one unless given")
    .action(async (options) => {
      const { showAccount } = await import("./accounts.ts");
      await showAccount(readSettings(), options);
    });
  accounts
    .command("credit")
    .description("grant credits")
    .argument("<usd>", "US dollars", dollars)
    .option("--team <id>", "the team; the only one unless given")
    .option("--note <note>", "why", "granted by the operator")
    .action(async (usd: string, options) => {
      const { creditAccount } = await import("./accounts.ts");
      await creditAccount(readSettings(), usd, options);
    });
  accounts
    .command("set")
    .description("set limits")
    .option("--team <id>", "the team; the only one unless given")
    .option("--monthly-cap <usd>", "most that may be spent in a month; none for no cap", dollarsOrNone)
    .addOption(new Option("--payment-method <on|off>", "whether a payment method is on file").choices(["on", "off"]))
    .option("--concurrent-runs <n>", "most workloads that may be unfinished at once", wholeNumber(0, 1_000_000))
    .action(async (options) => {
      const { setAccount } = await import("./accounts.ts");
      await setAccount(readSettings(), options);
    });

  program
    .command("sim")
    .description("live through simulated days of a deployment in which much goes wrong, and see that nothing is lost")
    .option("--seed <n>", "what decides everything that happens", wholeNumber(0), 1)
    .option("--seeds <n>", "how many seeds, from that one on", wholeNumber(1), 1)
    .option("--jobs <n>", "how many of them side by side; cores for as many as this machine has", jobs, 1)
    .option("--days <n>", "how long things go wrong, in simulated days", amount)
    .addOption(
      new Option("--hours <n>", "the same in hours; one hour unless given").argParser(amount).conflicts("days"),
    )
    .option("--trace <file>", "write down everything that happens")
    .action(async (options) => {
      const { sim } = await import("./sim.ts");
      await sim(options);
    });
}
