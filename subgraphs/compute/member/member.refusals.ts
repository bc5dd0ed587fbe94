import { refusals } from "../../../infra/kernel/refusal.ts";

export const MEMBER = refusals({
  invalid_email: [400, "The e-mail address is not acceptable.", "Use an address such as name@example.com."],
  member_exists: [
    409,
    "The team already has a member with this e-mail address.",
    "Use that member, or another address.",
  ],
});
