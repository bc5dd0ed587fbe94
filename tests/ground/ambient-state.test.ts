import { parseSync } from "oxc-parser";
import { describe, expect, test } from "vitest";
import { type SyntaxNode, sourceFiles, walk } from "../support/sources.ts";

const code = sourceFiles().filter((source) => !source.isTest);

/** Ways to ask the machine for time or chance, or to act at a later time, that a fake clock could not govern. */
function timeAndChance(node: SyntaxNode): string | null {
  if (node.type === "CallExpression" && node.callee?.type === "Identifier")
    return /^(setTimeout|setInterval|setImmediate|Date)$/.test(node.callee.name!) ? `${node.callee.name}()` : null;
  if (node.type === "NewExpression" && node.callee?.name === "Date" && node.arguments?.length === 0)
    return "new Date()";
  const member = memberName(node);
  return member && ["Date.now", "Math.random", "performance.now", "process.hrtime"].includes(member) ? member : null;
}

function environment(node: SyntaxNode): string | null {
  return memberName(node) === "process.env" ? "process.env" : null;
}

function memberName(node: SyntaxNode): string | null {
  if (node.type !== "MemberExpression" || node.computed || node.object?.type !== "Identifier") return null;
  return `${node.object.name}.${node.property?.name}`;
}

function uses(folders: readonly string[], rule: (node: SyntaxNode) => string | null): string[] {
  const found: string[] = [];
  for (const { file, program } of code)
    if (folders.some((folder) => file.startsWith(folder)))
      walk(program, (node) => {
        const use = rule(node);
        if (use) found.push(`${file} uses ${use}`);
      });
  return found;
}

test("subgraphs and workers take time and chance as arguments", () => {
  expect(uses(["subgraphs/", "workers/"], timeAndChance)).toEqual([]);
});

test("timers of Node's own modules do not get around it", () => {
  const importers = code
    .filter(({ file }) => /^(subgraphs|workers)\//.test(file))
    .filter(({ imports }) => imports.some((i) => /^node:timers/.test(i.target)))
    .map(({ file }) => file);
  expect(importers).toEqual([]);
});

test("the environment is read in one place", () => {
  // What runs inside a guest has the guest's environment, not the platform's.
  const exempt = /^infra\/(telemetry\/environment\.ts|runner\/guest\/)/;
  expect(uses([""], environment).filter((line) => !exempt.test(line))).toEqual([]);
});

describe("the rule itself", () => {
  test.each([
    ["Date.now()", "Date.now"],
    ["new Date()", "new Date()"],
    ["Date()", "Date()"],
    ["Math.random()", "Math.random"],
    ["setTimeout(f, 1)", "setTimeout()"],
    ["const f = performance.now", "performance.now"],
  ])("sees %s", (text, use) => {
    const seen: string[] = [];
    walk(parseSync("x.ts", text).program, (node) => seen.push(...[timeAndChance(node)].filter((u) => u !== null)));
    expect(seen).toEqual([use]);
  });

  test("lets dates be made of values", () => {
    const seen: unknown[] = [];
    walk(parseSync("x.ts", "new Date(5); clock.now(); Date.parse('x')").program, (node) =>
      seen.push(timeAndChance(node)),
    );
    expect(seen.filter(Boolean)).toEqual([]);
  });
});
