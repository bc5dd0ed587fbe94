/** What statements have changed: tables with their schema, and of each the columns; null where it may be any. */
export type Written = Map<string, Set<string> | null | typeof ROWS_WENT>;

/** Of a table of which rows were deleted, and nothing else was done to it. */
export const ROWS_WENT = "rows went";

interface Change {
  table: string;
  /** Null when rows came, or when the columns cannot be told. */
  columns: readonly string[] | null | typeof ROWS_WENT;
}

/** Tables stand with their schema in every statement of the platform. */
const CHANGE = /\b(insert\s+into|delete\s+from|truncate|update)\s+(?:only\s+)?([a-z_]+\.[a-z_]+)/gi;
const known = new Map<string, readonly Change[]>();

/** Whether a statement may have changed anything; one that returns all that it changed tells by its rows. */
export function wrote(text: string, rows: readonly unknown[]): boolean {
  const tells = /\breturning\b/i.test(text) && !/^\s*with\b/i.test(text);
  return changesOf(text).length > 0 && (rows.length > 0 || !tells);
}

/** Adds what a statement may have changed. */
export function addWritten(written: Written, text: string): void {
  for (const { table, columns } of changesOf(text)) {
    const before = written.get(table);
    if (columns === ROWS_WENT) written.set(table, before === undefined || before === ROWS_WENT ? ROWS_WENT : null);
    else if (columns === null || before === null || before === ROWS_WENT) written.set(table, null);
    else written.set(table, new Set([...(before ?? []), ...columns]));
  }
}

/**
 * What a statement may change, from its text.
 *
 * @throws Error when it changes something and does not say what: nobody would look at that
 */
function changesOf(text: string): readonly Change[] {
  const before = known.get(text);
  if (before) return before;
  const changes = [...text.matchAll(CHANGE)].map((found): Change => {
    const how = found[1]!.toLowerCase();
    const rest = text.slice(found.index + found[0].length);
    const columns = how === "update" ? assigned(rest) : how.startsWith("delete") ? ROWS_WENT : null;
    return { table: found[2]!.toLowerCase(), columns };
  });
  if (changes.length === 0 && /\b(insert|merge|truncate|delete|(?<!for |no key )update)\b/i.test(text))
    throw new Error(`what does this change? ${text}`);
  known.set(text, changes);
  return changes;
}

/** Columns that an UPDATE assigns, from what follows its table's name; null when that cannot be told. */
function assigned(rest: string): string[] | null {
  const set = /^(?:\s+(?:as\s+)?(?!set\b)\w+)?\s+set\s+/i.exec(rest);
  if (!set) return null;
  const names = assignments(rest.slice(set[0].length)).map((part) => /^\s*([a-z_]+)\s*=/i.exec(part)?.[1]);
  return names.every((name) => name !== undefined) ? names : null;
}

/** `a = f(b, c), d = 1 where …` as `a = f(b, c)` and `d = 1`. */
function assignments(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const token of text.matchAll(/'[^']*'|[(),;]|\b(?:where|from|returning)\b|$/gi)) {
    const [sign] = token;
    if (sign === "(") depth++;
    else if (sign === ")" && depth > 0) depth--;
    else if (depth === 0 && !sign.startsWith("'")) {
      parts.push(text.slice(from, token.index));
      if (sign !== ",") break;
      from = token.index + 1;
    }
  }
  return parts;
}
