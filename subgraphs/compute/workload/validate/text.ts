/** Whether a text holds a control character: C0, DEL or C1. */
export function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** Size of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** Whether a value is a plain JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
