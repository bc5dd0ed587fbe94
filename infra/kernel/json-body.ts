import { COMMON, Refused } from "./refusal.ts";

/** A parsed request body and the members that it repeats, as JSON pointers. */
export interface JsonBody {
  value: Record<string, unknown>;
  repeated: string[];
}

/** How deep objects and arrays of a body may nest. */
export const MAX_BODY_DEPTH = 64;

/**
 * Parses a body that must be one JSON object in UTF-8. `JSON.parse` keeps the last of repeated members without a word,
 * so the text is read a second time for them; who must refuse repeats looks at `repeated`.
 */
export function parseJsonBody(bytes: Uint8Array): JsonBody {
  const text = decodeUtf8(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Refused(COMMON.invalid_json, { message: `The body is not valid JSON: ${(error as Error).message}` });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Refused(COMMON.invalid_json);
  return { value: value as Record<string, unknown>, repeated: repeatedMembers(text) };
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refused(COMMON.invalid_json, { message: "The body is not UTF-8." });
  }
}

interface Level {
  pointer: string;
  /** Members seen; null inside an array. */
  seen: Set<string> | null;
  index: number;
  key: string | null;
}

/** Pointers of repeated members in a text that `JSON.parse` has accepted. Linear in the text's length. */
export function repeatedMembers(text: string): string[] {
  const repeated: string[] = [];
  const stack: Level[] = [];
  let expectKey = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const top = stack.at(-1);
    if (c === '"') {
      const end = stringEnd(text, i);
      if (expectKey && top?.seen) {
        top.key = JSON.parse(text.slice(i, end + 1)) as string;
        if (top.seen.has(top.key)) repeated.push(childPointer(top));
        top.seen.add(top.key);
        expectKey = false;
      }
      i = end;
    } else if (c === "{" || c === "[") {
      if (stack.length >= MAX_BODY_DEPTH)
        throw new Refused(COMMON.invalid_json, { message: `The body nests deeper than ${MAX_BODY_DEPTH} levels.` });
      stack.push({ pointer: top ? childPointer(top) : "", seen: c === "{" ? new Set() : null, index: 0, key: null });
      expectKey = c === "{";
    } else if (c === "}" || c === "]") {
      stack.pop();
      expectKey = false;
    } else if (c === "," && top) {
      top.index++;
      expectKey = top.seen !== null;
    }
  }
  return repeated;
}

function childPointer(level: Level): string {
  const step = level.seen ? level.key! : String(level.index);
  return `${level.pointer}/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function stringEnd(text: string, start: number): number {
  for (let i = start + 1; ; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === '"') return i;
  }
}
