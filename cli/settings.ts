import { SETTINGS, type Setting } from "../infra/telemetry/setting-table.ts";

const WIDTH = 100;

/** Every setting for a terminal: its name and default on a line, its meaning below. */
export function settingsText(): string {
  return (Object.values(SETTINGS) as Setting<unknown>[])
    .map(({ variable, fallback, otherwise, description }) => {
      const value = fallback || otherwise || "";
      return `${variable}${value ? `  (${value})` : ""}\n${wrapped(description)}\n`;
    })
    .join("")
    .replaceAll("`", "");
}

function wrapped(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1)!.length + word.length > WIDTH) lines.push("");
    lines[lines.length - 1] += ` ${word}`;
  }
  return lines.map((line) => `   ${line}`).join("\n");
}
