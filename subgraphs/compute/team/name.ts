import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/;

/** A display name of the team, a member or a key, trimmed; refused when empty, too long or not one line. */
export function requireName(name: string, field: string): string {
  const trimmed = name.trim();
  if (trimmed === "" || trimmed.length > LIMITS.displayNameLength || CONTROL.test(trimmed))
    throw new Refused(COMMON.invalid_request, {
      field,
      message: `A name is one line of 1 to ${LIMITS.displayNameLength} characters.`,
    });
  return trimmed;
}
