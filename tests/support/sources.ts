import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "oxc-parser";
import { PROJECT_ROOT, projectFile } from "../../infra/telemetry/project-root.ts";

export interface SourceImport {
  /** A path from the project's root for files of the project, such as `infra/kernel/ids.ts`; else the package's name. */
  readonly target: string;
  readonly ofProject: boolean;
  /** Gone after compilation. */
  readonly typeOnly: boolean;
  /** Loaded when a line asks for it, not together with the file. */
  readonly lazy: boolean;
}

export interface SourceFile {
  /** Path from the project's root, with slashes. */
  readonly file: string;
  readonly isTest: boolean;
  readonly imports: readonly SourceImport[];
  /** It declares nothing of its own and only passes on what others export. */
  readonly onlyPassesOn: boolean;
  readonly program: object;
}

/** Every TypeScript file that the compiler checks, parsed. */
export function sourceFiles(): SourceFile[] {
  const { include } = JSON.parse(readFileSync(projectFile("tsconfig.json"), "utf8")) as { include: string[] };
  const patterns = include.map((name) => (name.endsWith(".ts") ? name : `${name}/**/*.ts`));
  const files = globSync(patterns, { cwd: PROJECT_ROOT });
  return files.map((file) => parse(file.split(path.sep).join("/"))).sort((a, b) => (a.file < b.file ? -1 : 1));
}

function parse(file: string): SourceFile {
  const { module, program, errors } = parseSync(file, readFileSync(path.join(PROJECT_ROOT, file), "utf8"));
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]!.message}`);
  const source = readFileSync(path.join(PROJECT_ROOT, file));
  const imports = module.staticImports.map((i) =>
    importOf(file, i.moduleRequest.value, i.entries.length > 0 && i.entries.every((entry) => entry.isType)),
  );
  const passedOn = module.staticExports.flatMap((e) => e.entries).filter((entry) => entry.moduleRequest);
  for (const entry of passedOn) imports.push(importOf(file, entry.moduleRequest!.value, entry.isType));
  for (const { moduleRequest } of module.dynamicImports) {
    const text = source.subarray(moduleRequest.start, moduleRequest.end).toString();
    if (/^["'][^"']+["']$/.test(text)) imports.push({ ...importOf(file, text.slice(1, -1), false), lazy: true });
  }
  const statements = (program as { body: { type: string; source?: unknown }[] }).body;
  const onlyPassesOn =
    passedOn.length > 0 &&
    statements.every((s) => s.type === "ImportDeclaration" || (s.type.startsWith("Export") && s.source));
  return { file, isTest: isTestFile(file), imports, onlyPassesOn, program };
}

function isTestFile(file: string): boolean {
  return file.startsWith("tests/") || file.endsWith(".test.ts") || file === "vitest.config.ts";
}

function importOf(from: string, specifier: string, typeOnly: boolean): SourceImport {
  if (!specifier.startsWith(".")) {
    const parts = specifier.split("/");
    const name = specifier.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0]!;
    return { target: specifier.startsWith("node:") ? specifier : name, ofProject: false, typeOnly, lazy: false };
  }
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(from), specifier));
  if (!existsSync(path.join(PROJECT_ROOT, target)))
    throw new Error(`${from} imports ${specifier}, which does not exist`);
  return { target, ofProject: true, typeOnly, lazy: false };
}

/** Calls `visit` with every node of a program. */
export function walk(node: unknown, visit: (node: SyntaxNode) => void): void {
  if (Array.isArray(node)) {
    for (const child of node) walk(child, visit);
  } else if (node !== null && typeof node === "object") {
    if (typeof (node as SyntaxNode).type === "string") visit(node as SyntaxNode);
    for (const child of Object.values(node)) if (child !== null && typeof child === "object") walk(child, visit);
  }
}

/** The members of ESTree nodes that the rules look at. */
export interface SyntaxNode {
  readonly type: string;
  readonly name?: string;
  readonly computed?: boolean;
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly callee?: SyntaxNode;
  readonly arguments?: readonly unknown[];
}
