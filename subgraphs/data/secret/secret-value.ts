import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { SECRET } from "./secret.refusals.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Variables that the platform itself sets for a run; compared in upper case, so a look-alike is refused too. */
const RESERVED = /^(NODUS_|WANDB_)/;
/** True for what could be the name of a secret. */
export function isSecretName(name: string): boolean {
  return NAME.test(name);
}

/** Refuses a name that could not be an environment variable of the customer's. */
export function requireSecretName(name: string): void {
  if (!isSecretName(name))
    throw new Refused(SECRET.invalid_secret, {
      field: "/name",
      message: "A secret's name is a letter or _ followed by up to 127 letters, digits or _.",
      fix: "Choose a name that an environment variable can have, such as API_TOKEN.",
    });
  if (RESERVED.test(name.toUpperCase())) throw new Refused(SECRET.reserved_name, { field: "/name" });
}

/** The value's bytes; refused when empty, too long, or not text that an environment variable can hold. */
export function secretBytes(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  if (bytes.length === 0 || bytes.length > LIMITS.secretValueBytes || value.includes("\0") || !value.isWellFormed())
    throw new Refused(SECRET.invalid_secret, {
      field: "/value",
      message: `A secret's value is 1 to ${LIMITS.secretValueBytes} bytes of UTF-8 without NUL.`,
      fix: "Send the value as text, shortened or encoded (base64, say) if need be; larger files go up as assets.",
    });
  return bytes;
}
