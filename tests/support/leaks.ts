import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

/** The ways in which a value may stand somewhere without being seen at once. */
function disguises(value: string): Buffer[] {
  const bytes = Buffer.from(value, "utf8");
  const inBase64 = [0, 1, 2].flatMap((shift) => {
    // Within a longer text the value starts at any of three places; characters that hold bits of neighbours are cut off.
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64url");
    const inner = text.slice(shift === 0 ? 0 : shift + 1, Math.floor(((shift + bytes.length) * 8) / 6));
    return [inner, inner.replaceAll("-", "+").replaceAll("_", "/")];
  });
  const texts = [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    encodeURIComponent(value).toLowerCase(),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    ...inBase64,
  ];
  return [...new Set(texts)].map((text) => Buffer.from(text, "utf8"));
}

/** Names of those values that stand in the bytes in some disguise. */
export function leaksIn(bytes: Buffer, values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values)
    .filter(([, value]) => disguises(value).some((disguise) => bytes.includes(disguise)))
    .map(([name]) => name);
}

/** Every regular file below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(file);
    return entry.isFile() ? [file] : [];
  });
}

/** `file: name` for every value that stands in a file. */
export function leaksInFiles(files: readonly string[], values: Readonly<Record<string, string>>): string[] {
  return files
    .filter((file) => statSync(file).size > 0)
    .flatMap((file) => leaksIn(readFileSync(file), values).map((name) => `${file}: ${name}`));
}
