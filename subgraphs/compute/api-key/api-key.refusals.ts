import { refusals } from "../../../infra/kernel/refusal.ts";

export const API_KEY = refusals({
  invalid_scopes: [400, "The scopes are not acceptable.", "Name at least one documented scope, each once."],
  invalid_expiry: [400, "The expiry is not acceptable.", "Use a time in the future, or leave it out."],
  member_not_found: [400, "The team has no such member.", "Use the id of a member of your team, or leave it out."],
});
