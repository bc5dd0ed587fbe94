/** Narrows a string to one of a closed set. */
export function isOneOf<const T extends readonly string[]>(values: T, text: unknown): text is T[number] {
  return typeof text === "string" && (values as readonly string[]).includes(text);
}
