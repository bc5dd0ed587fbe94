import { refusals } from "../../../infra/kernel/refusal.ts";

export const SECRET = refusals({
  invalid_secret: [
    400,
    "The secret is not acceptable.",
    "Use a name of letters, digits and _, and 1 to 4096 bytes of UTF-8.",
  ],
  reserved_name: [
    400,
    "This name is reserved for the platform.",
    "Choose a name that does not start with NODUS_ or WANDB_.",
  ],
  secret_not_found: [404, "The team has no secret of this name.", "Check the name in the list of secrets."],
  secret_limit: [409, "The team has as many secrets as it may.", "Retire a secret that is no longer used."],
});

/** The same code where a body refers to a secret: the body is wrong, not the path. */
export const SECRET_REFERENCE = refusals({
  secret_not_found: [400, "The team has no secret of this name.", "Write the secret first, or correct the name."],
  secret_unreadable: [
    409,
    "The secret was sealed with a master key that this platform does not have.",
    "Write the secret again, or start the platform with its former master key.",
  ],
});
