import { InvalidArgumentError } from "commander";
import { isOneOf } from "../infra/kernel/closed-set.ts";
import { fromUsdText } from "../infra/kernel/micros.ts";

// What options take. Each function gets an option's text and, where the option may be repeated, what came before; it gives
// the value or throws InvalidArgumentError with what would do, which commander tells together with the option's name.

/** A whole number from `least` to `most`, in decimal digits. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number, ${range}.`);
  };
}

/** Any text but none: an empty variable in a script is no value. */
export function filled(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("It must not be empty.");
  return text;
}

/** A number above 0. */
export function amount(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0) return value;
  throw new InvalidArgumentError("It must be a number above 0.");
}

/** US dollars with at most six decimals, as they were written. */
export function dollars(text: string): string {
  const micros = fromUsdText(text);
  if (micros === null || micros < 0n)
    throw new InvalidArgumentError("It must be US dollars with at most six decimals, such as 12.50.");
  return text;
}

/** Words separated by commas, each one of `words`. */
export function wordsOf<const T extends readonly string[]>(words: T): (text: string) => T[number][] {
  return (text) =>
    text.split(",").map((part) => {
      const word = part.trim();
      if (isOneOf(words, word)) return word;
      throw new InvalidArgumentError(`Allowed are ${words.join(", ")}.`);
    });
}

/** An instant such as `2030-12-01T18:00:00Z`. */
export function instant(text: string): string {
  const form = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
  if (form.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("It must be an RFC 3339 time, such as 2030-12-01T18:00:00Z.");
}

/** `NAME=VALUE` pairs of a repeatable option, each name once. */
export function pair(text: string, before: readonly [string, string][] = []): [string, string][] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  const name = text.slice(0, at);
  if (before.some(([other]) => other === name)) throw new InvalidArgumentError(`${name} is given twice.`);
  return [...before, [name, text.slice(at + 1)]];
}
