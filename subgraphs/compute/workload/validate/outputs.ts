import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { COMMON } from "../../../../infra/kernel/refusal.ts";
import type { StagePayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { isPortableName, isReservedOutputName } from "./names.ts";
import { pathFault } from "./paths.ts";
import { at, type Pointer, refuse } from "./refuse.ts";
import { isObject } from "./text.ts";

/** A table that an output is loaded into once its stage is done. */
export interface SinkDraft {
  output: string;
  /** Name or id. */
  connection: string;
  /** In lower case, as PostgreSQL folds it. */
  table: string;
  field: Pointer;
}

/** What a stage's declared outputs come to. */
export interface CheckedOutputs {
  /** Name to path; null when none is declared, so that the default archives are saved. */
  paths: Record<string, string> | null;
  sinks: SinkDraft[];
}

/** Checks a stage's declared outputs. The names are the customer's, so the object comes as it was sent. */
export function checkOutputs(outputs: StagePayload["outputs"], field: Pointer): CheckedOutputs {
  const entries = Object.entries(outputs ?? {});
  if (entries.length === 0) return { paths: null, sinks: [] };
  if (entries.length > LIMITS.stageOutputs)
    refuse(WORKLOAD.invalid_output, field, `There are more than ${LIMITS.stageOutputs} outputs.`);
  const seen = new Set<string>();
  const sinks: SinkDraft[] = [];
  const paths = entries.map(([name, declared]): [string, string] => {
    const place = at(field, name);
    checkName(name, seen, place);
    const { path, sink } = declaration(declared, place);
    const fault = pathFault(path);
    if (fault) refuse(WORKLOAD.invalid_output, place, `The path ${fault}.`);
    if (sink !== undefined) sinks.push({ output: name, ...checkSink(sink, at(place, "sink")) });
    return [name, path];
  });
  requireDistinctTargets(sinks.map(({ connection, table, field }) => ({ target: [connection, table], field })));
  return { paths: Object.fromEntries(paths), sinks };
}

/** Two outputs of a stage would replace each other's rows in one table. */
export function requireDistinctTargets(sinks: readonly { target: readonly string[]; field: Pointer }[]): void {
  const seen = new Set<string>();
  for (const { target, field } of sinks) {
    const key = JSON.stringify(target);
    if (seen.has(key)) refuse(WORKLOAD.duplicate_sink_target, field);
    seen.add(key);
  }
}

function checkName(name: string, seen: Set<string>, field: Pointer): void {
  if (!isPortableName(name)) refuse(WORKLOAD.invalid_output, field, "The name is not a file name on every system.");
  if (isReservedOutputName(name)) refuse(WORKLOAD.invalid_output, field, "Names that start with nodus. are reserved.");
  const folded = name.toLowerCase();
  if (seen.has(folded)) refuse(WORKLOAD.invalid_output, field, "Two outputs differ in case only.");
  seen.add(folded);
}

function declaration(declared: unknown, field: Pointer): { path: string; sink?: unknown } {
  if (typeof declared === "string") return { path: declared };
  if (!isObject(declared)) refuse(WORKLOAD.invalid_output, field, "An output is a path, or an object with a path.");
  refuseOthers(declared, ["path", "sink"], field);
  const { path, sink } = declared;
  if (typeof path !== "string") refuse(WORKLOAD.invalid_output, at(field, "path"), "The path is missing.");
  return sink === undefined ? { path } : { path, sink };
}

function checkSink(sink: unknown, field: Pointer): Omit<SinkDraft, "output"> {
  if (!isObject(sink)) refuse(WORKLOAD.invalid_output, field, "A sink is an object.");
  refuseOthers(sink, ["connection", "table"], field);
  const { connection, table } = sink;
  if (typeof connection !== "string" || connection === "")
    refuse(WORKLOAD.invalid_output, at(field, "connection"), "The sink names no connection.");
  if (typeof table !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(table))
    refuse(WORKLOAD.invalid_output, at(field, "table"), "The sink names no table.");
  if (table.toLowerCase().startsWith("nodus_"))
    refuse(WORKLOAD.invalid_output, at(field, "table"), "Tables whose names start with nodus_ are the platform's own.");
  return { connection, table: table.toLowerCase(), field };
}

/** Refuses members of a closed object that it does not have. */
export function refuseOthers(object: Record<string, unknown>, known: readonly string[], field: Pointer): void {
  for (const member of Object.keys(object))
    if (!known.includes(member)) refuse(COMMON.unknown_field, at(field, member), `There is no member ${member} here.`);
}
