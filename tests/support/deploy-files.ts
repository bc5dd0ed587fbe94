import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import type { Layout, ProcessSpec } from "./deployment.ts";

/** One of our processes as a file of `infra/deploy` describes it. */
export interface DescribedProcess {
  /** What follows the program on its command line. */
  args: string[];
  environment: Record<string, string>;
  /** The host under which the others find it. */
  host: string;
}

interface ComposeService {
  image: string;
  command: string[];
  environment: Record<string, string>;
  ports?: string[];
  init?: boolean;
  healthcheck: { test: string[] };
}

/** Where values of the operator's own environment stand in the files; `${NAME:-default}` has one of its own. */
function filledIn(text: string): string {
  return text.replace(/\$\{[A-Z_]+:([-?])([^}]*)\}/g, (_, kind: string, rest: string) =>
    kind === "-" ? rest : "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
  );
}

/** The services of `compose.yaml`, ours and others', by name. */
export function composeServices(): Record<string, ComposeService> {
  const text = filledIn(readFileSync(projectFile("infra", "deploy", "compose.yaml"), "utf8"));
  return (parse(text, { merge: true }) as { services: Record<string, ComposeService> }).services;
}

/** Our own services of `compose.yaml`. */
export function composeProcesses(): Record<string, DescribedProcess> {
  const own = Object.entries(composeServices()).filter(([, { image }]) => image === "nodus");
  return Object.fromEntries(
    own.map(([host, { command, environment }]) => [host, { args: command, environment, host }]),
  );
}

/** The services of the systemd units, by their names without `nodus-`. */
export function systemdProcesses(): Record<string, DescribedProcess> {
  const folder = projectFile("infra", "deploy", "systemd");
  const shared = assignments(readFileSync(`${folder}/nodus.env`, "utf8").split("\n"));
  const units = readdirSync(folder).filter((file) => file.endsWith(".service"));
  return Object.fromEntries(
    units.map((file) => {
      const lines = readFileSync(`${folder}/${file}`, "utf8").split("\n");
      const values = (key: string) => lines.filter((l) => l.startsWith(`${key}=`)).map((l) => l.slice(key.length + 1));
      const [, , ...args] = (values("ExecStart")[0] ?? "").split(" ");
      const environment = { ...shared, ...assignments(values("Environment")) };
      return [file.replace(/^nodus-|\.service$/g, ""), { args, environment, host: "127.0.0.1" }];
    }),
  );
}

/** The described processes on ports of this machine; addresses in their environment are put to these. */
export function layoutOf(described: Readonly<Record<string, DescribedProcess>>): Layout<string> {
  const everything = Object.entries(described);
  const specs = everything.map(([name, { args, environment }]): [string, ProcessSpec] => {
    const { NODUS_ROLES } = environment;
    return [name, { args, ...(NODUS_ROLES ? { settings: { NODUS_ROLES } } : {}) }];
  });
  const { environment } = described.gateway!;
  return {
    processes: Object.fromEntries(specs),
    environment: (originOf) => {
      const moved = (text: string) =>
        everything.reduce(
          (left, [name, { host, environment: own }]) => left.replaceAll(`http://${host}:${own.PORT}`, originOf(name)),
          text,
        );
      const kept = Object.entries(environment).filter(([variable]) => !OWN.has(variable));
      return Object.fromEntries(kept.map(([variable, text]) => [variable, moved(text)]));
    },
  };
}

/** What a test gives of its own: stores, and where to listen. */
const OWN = new Set(["HOST", "PORT", "DATABASE_URL", "REDIS_URL", "NODUS_DATA_DIR", "NODUS_ROLES"]);

function assignments(lines: readonly string[]): Record<string, string> {
  const given = lines.filter((line) => /^[A-Z]/.test(line));
  return Object.fromEntries(given.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
