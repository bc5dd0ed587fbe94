/** What a platform wrote of level `error` or worse, each different one once with how often it came. */
export function loggedErrors(output: string): string[] {
  const counts = new Map<string, number>();
  for (const line of output.split("\n")) {
    const entry = entryOf(line);
    if (entry?.level !== "error" && entry?.level !== "fatal") continue;
    const text = [entry.msg, entry.err?.message].filter((part) => part !== undefined).join(": ");
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => `${count} × ${text}`);
}

interface Entry {
  level?: string;
  msg?: string;
  err?: { message?: string };
}

/** Null for a line that is no entry of the log: the banner, or what a program of the system says. */
function entryOf(line: string): Entry | null {
  if (!line.startsWith("{")) return null;
  try {
    return JSON.parse(line) as Entry;
  } catch {
    return null; // a line that was cut in two
  }
}
