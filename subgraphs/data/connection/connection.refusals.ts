import { refusals } from "../../../infra/kernel/refusal.ts";

export const CONNECTION = refusals({
  invalid_connection_name: [
    400,
    "The connection's name is not acceptable.",
    "Start with a letter and use up to 128 letters, digits, _ or -; not github, and not conn_ at the start.",
  ],
  invalid_connection: [400, "The connection is not acceptable.", "Correct the member that the message names."],
  secret_shape_invalid: [
    400,
    "The secret does not hold what this kind of connection needs.",
    "Write the secret again in the documented form, then create the connection.",
  ],
  admin_required: [
    403,
    "Live mode hands the credential to runs, so it needs an administrator of the team.",
    "Use an administrator's own key, or leave live_mode out.",
  ],
  connection_exists: [409, "The team has a connection of this name.", "Choose another name, or delete that one."],
  connection_limit: [409, "The team has as many connections as it may.", "Delete one that is no longer used."],
  connection_in_use: [409, "The connection is in use.", "Wait until the work that uses it is over."],
  connection_inactive: [
    409,
    "The connection's version of its secret was replaced or retired.",
    "Create a new connection for the secret's present version.",
  ],
  verification_failed: [
    422,
    "The service could not be reached with this credential.",
    "Correct what the reason names, then try again.",
  ],
});

/** Refusals of references in a body. */
export const CONNECTION_REFERENCE = refusals({
  connection_not_found: [400, "The team has no such connection.", "Use the name or id of a connection in the list."],
  connection_inactive: [
    409,
    "The connection's version of its secret was replaced or retired.",
    "Create a new connection for the secret's present version, and name that.",
  ],
  connection_scope: [403, "The connection's scope does not allow this use.", "Use a connection whose scope allows it."],
  connection_kind: [400, "A connection of this kind cannot be used here.", "Use a connection of a fitting kind."],
  live_mode_required: [
    409,
    "Runs are given the credential of a connection in live mode only.",
    "Have an administrator create a wandb connection with live_mode.",
  ],
});
