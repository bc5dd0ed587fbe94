import { describe, expect, test } from "vitest";
import { type SyntaxNode, sourceFiles, walk } from "../support/sources.ts";

/** Functions by which a statement would ask the database for the time, for chance or for a name. */
const ASKS =
  /\b(?:(?:now|random|clock_timestamp|statement_timestamp|transaction_timestamp|gen_random_uuid|uuidv[47])\s*\(|(?:current_timestamp|current_date|localtimestamp)\b)/i;

/** Looks like a statement or a part of one. */
const SQL = /\b(select|insert into|update|delete from|where|values|returning)\b/i;

/** A text as it stands in the source, quotes left out; a template in its pieces. */
function texts(node: SyntaxNode): string[] {
  const { value } = node as { value?: unknown };
  if (node.type === "Literal" && typeof value === "string") return [value];
  if (node.type === "TemplateElement") return [(value as { raw: string }).raw];
  return [];
}

const asking = (text: string) => SQL.test(text) && ASKS.test(text);

test("statements take time, chance and ids as values, so that a simulated world decides them", () => {
  const found: string[] = [];
  for (const { file, program, isTest } of sourceFiles())
    if (!isTest && /^(subgraphs|workers|intake)\//.test(file))
      walk(program, (node) => {
        for (const text of texts(node)) if (asking(text)) found.push(`${file}: ${text.trim().slice(0, 80)}`);
      });
  expect(found).toEqual([]);
});

describe("the rule itself", () => {
  test.each([
    "select now()",
    "update t set at = current_timestamp",
    "insert into t (id) values (gen_random_uuid())",
    "select id from t order by random() limit 1",
    "select clock_timestamp ( )",
  ])("sees %s", (text) => expect(asking(text)).toBe(true));

  test.each(["select known()", "what happens now (and then)", "select random_seed from t where id = $1"])(
    "lets %s pass",
    (text) => expect(asking(text)).toBe(false),
  );
});
