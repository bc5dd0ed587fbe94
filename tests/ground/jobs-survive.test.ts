import { expect, test } from "vitest";
import { type SourceFile, type SyntaxNode, sourceFiles, walk } from "../support/sources.ts";

/** What every job is put through, by the names of `tests/support/jobs.ts`. */
const TRIALS = ["survivesBeingRunTwice", "survivesDyingAtEveryStep"];

interface Declaration {
  readonly file: string;
  readonly name: string;
  readonly node: SyntaxNode;
}

const sources = sourceFiles();
const product = sources.filter(({ isTest }) => !isTest);
const tests = sources.filter(({ isTest, file }) => isTest && file !== "tests/support/jobs.test.ts");

/** Names of the constants that hold a job's definition. */
function definedJobs(): Declaration[] {
  return product.flatMap((source) => declarations(source).filter(({ node }) => callsFirst(node, "defineJob")));
}

/** The constants or functions that bind a body to a definition, by the definition's name. */
function implementations(): Map<string, Declaration> {
  const found = new Map<string, Declaration>();
  for (const declaration of product.flatMap(declarations))
    for (const call of calls(declaration.node, "implementJob")) {
      const job = nameOf(call.arguments?.[0]);
      if (job) found.set(job, declaration);
    }
  return found;
}

/** What each test that calls a trial names, itself or through what it uses of its file. */
const trialTests: Set<string>[] = tests.flatMap((source) => {
  const names = namesIn(source.program);
  if (!TRIALS.some((trial) => names.has(trial))) return [];
  const local = new Map(declarations(source).map(({ name, node }) => [name, namesIn(node)]));
  return calls(source.program, "test").map((call) => reachable(namesIn(call), local));
});

/** The trials that tests put an implementation through: both are named in one test. */
function trialsOf(implementation: string): Set<string> {
  const naming = trialTests.filter((names) => names.has(implementation));
  return new Set(TRIALS.filter((trial) => naming.some((names) => names.has(trial))));
}

test("every job is run twice, and dies at every step, in a test of its own", { timeout: 120_000 }, () => {
  const jobs = definedJobs();
  const implemented = implementations();
  expect(jobs.map(({ name }) => name)).toEqual(expect.arrayContaining(["placeStage", "settlePlacement", "commitLog"]));
  const lacking = jobs.flatMap((job) => {
    const implementation = implemented.get(job.name);
    if (!implementation) return [`${job.name} (${job.file}): nothing implements it`];
    const trials = trialsOf(implementation.name);
    return TRIALS.filter((trial) => !trials.has(trial)).map(
      (trial) => `${job.name} (${implementation.file}): ${trial}`,
    );
  });
  expect(lacking).toEqual([]);
});

test("a job that no test puts on trial is found out", () => {
  expect([...trialsOf("settlePlacementJob")].sort()).toEqual([...TRIALS].sort());
  expect([...trialsOf("aJobThatNobodyTries")]).toEqual([]);
});

/** Constants and functions at the top of a file. */
function declarations({ file, program }: Pick<SourceFile, "file" | "program">): Declaration[] {
  const { body } = program as { body: (SyntaxNode & { declaration?: SyntaxNode })[] };
  return body.flatMap((statement) => {
    const node = (statement.declaration ?? statement) as SyntaxNode & Declared;
    if (node.type === "FunctionDeclaration") return [{ file, name: node.id!.name!, node }];
    if (node.type !== "VariableDeclaration") return [];
    return node.declarations!.flatMap((one) => (one.id.name ? [{ file, name: one.id.name, node: one }] : []));
  });
}

interface Declared {
  readonly id?: SyntaxNode;
  readonly declarations?: readonly (SyntaxNode & { id: SyntaxNode })[];
}

function calls(node: unknown, callee: string): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  walk(node, (one) => {
    if (one.type === "CallExpression" && nameOf(one.callee) === callee) found.push(one);
  });
  return found;
}

/** Whether a constant is what a call of that function gives. */
function callsFirst(node: SyntaxNode, callee: string): boolean {
  const { init } = node as SyntaxNode & { init?: SyntaxNode };
  return init?.type === "CallExpression" && nameOf(init.callee) === callee;
}

function nameOf(node: unknown): string | undefined {
  return (node as SyntaxNode | undefined)?.name;
}

function namesIn(node: unknown): Set<string> {
  const names = new Set<string>();
  walk(node, ({ type, name }) => {
    if (type === "Identifier" && name) names.add(name);
  });
  return names;
}

/** The names, and the names in whatever of the file they stand for. */
function reachable(names: Set<string>, local: ReadonlyMap<string, Set<string>>): Set<string> {
  const seen = new Set(names);
  for (const name of seen) for (const further of local.get(name) ?? []) seen.add(further);
  return seen;
}
