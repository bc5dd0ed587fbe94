import { isIP } from "node:net";
import { isOneOf } from "../kernel/closed-set.ts";
import { fromUsdText, type Micros } from "../kernel/micros.ts";

/** Why a value is not acceptable, as the end of a sentence that begins with the variable's name. */
export class Unacceptable extends Error {}

/** Turns a variable's text into its value, or throws `Unacceptable`. */
export type Parse<T> = (text: string) => T;

export function wholeNumber(least: number, most: number): Parse<number> {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) throw new Unacceptable(`must be a whole number from ${least} to ${most}`);
    return value;
  };
}

const WORDS: Record<string, boolean> = {
  "1": true,
  true: true,
  yes: true,
  on: true,
  "0": false,
  false: false,
  no: false,
  off: false,
};

export const yesOrNo: Parse<boolean> = (text) => {
  const value = WORDS[text.toLowerCase()];
  if (value === undefined) throw new Unacceptable("must be 1 or 0");
  return value;
};

export function oneOf<const T extends readonly string[]>(values: T): Parse<T[number]> {
  return (text) => {
    if (!isOneOf(values, text)) throw new Unacceptable(`must be one of ${values.join(", ")}`);
    return text;
  };
}

/** A comma-separated list; blanks around items and empty items are dropped. */
export function listOf<T>(item: Parse<T>): Parse<readonly T[]> {
  return (text) =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map(item);
}

/** An absolute URL of one of the schemes, without a slash at its end. */
export function url(schemes: readonly string[]): Parse<string> {
  return (text) => {
    const expected = `must be a URL that starts with ${schemes.map((s) => `${s}://`).join(" or ")}`;
    if (!URL.canParse(text) || !schemes.includes(new URL(text).protocol.slice(0, -1))) throw new Unacceptable(expected);
    return text.replace(/\/+$/, "");
  };
}

/** A browser origin such as `https://console.example.com`, or `*` for all. */
export const origin: Parse<string> = (text) => {
  if (text === "*") return text;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol) || new URL(text).origin !== text)
    throw new Unacceptable(`must list origins such as https://console.example.com, and "${text}" is none`);
  return text;
};

/** A host name, an IP address or a block of addresses such as `10.0.0.0/8`. */
export const hostOrBlock: Parse<string> = (text) => {
  const [address = "", prefix, extra] = text.split("/");
  const version = isIP(address);
  const isBlock =
    version !== 0 && prefix !== undefined && /^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128);
  const isName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i.test(text);
  if (extra !== undefined || !(isBlock || (prefix === undefined && (version !== 0 || isName))))
    throw new Unacceptable(`must list hosts, addresses or blocks such as 10.0.0.0/8, and "${text}" is none`);
  return text.toLowerCase();
};

export interface AcceleratorCount {
  readonly family: string;
  readonly count: number;
}

/** `H100:2`: a family and how many. */
export const accelerators: Parse<AcceleratorCount> = (text) => {
  const match = /^([A-Za-z][A-Za-z0-9-]{0,31}):([1-9]\d{0,2})$/.exec(text);
  if (!match) throw new Unacceptable(`must list families with counts such as H100:2, and "${text}" is none`);
  return { family: match[1]!.toUpperCase(), count: Number(match[2]) };
};

/** `name=url` pairs, such as `compute=http://compute:4001`. */
export function urlOf<const N extends readonly string[]>(names: N): Parse<readonly [N[number], string]> {
  return (text) => {
    const at = text.indexOf("=");
    const name = text.slice(0, at);
    const address = text.slice(at + 1);
    // A list that was joined by something else would otherwise be one odd address.
    if (!isOneOf(names, name) || /[\s;]/.test(address))
      throw new Unacceptable(`must list name=URL pairs separated by commas, with the names ${names.join(", ")}`);
    return [name, url(["http", "https"])(address)];
  };
}

/** Dollars with at most six decimals, zero or more. */
export const dollars: Parse<Micros> = (text) => {
  const micros = fromUsdText(text);
  if (micros === null || micros < 0n) throw new Unacceptable("must be an amount in US dollars, such as 0.10");
  return micros;
};

/** A percentage with at most two decimals, as basis points. */
export const percentAsBasisPoints: Parse<number> = (text) => {
  const match = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(text);
  const points = match ? Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0")) : Number.NaN;
  if (!(points <= 10_000)) throw new Unacceptable("must be a percentage from 0 to 100, such as 12.5");
  return points;
};

/** An API key as a client may send it: printable ASCII without spaces. */
export const apiKey: Parse<string> = (text) => {
  if (!/^[\x21-\x7e]{1,256}$/.test(text))
    throw new Unacceptable("must be 1 to 256 printable ASCII characters without spaces");
  return text;
};

/** 32 bytes as 64 hexadecimal digits or as base64. */
export const key256: Parse<Buffer> = (text) => {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (bytes.length !== 32 || !/^[A-Za-z0-9+/_=-]+$/.test(text))
    throw new Unacceptable('must be 32 bytes in base64 or hexadecimal; "openssl rand -base64 32" makes one');
  return bytes;
};

export function word(pattern: RegExp, such: string): Parse<string> {
  return (text) => {
    if (!pattern.test(text)) throw new Unacceptable(`must be ${such}`);
    return text;
  };
}
