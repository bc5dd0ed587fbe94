import { refusals } from "../../../infra/kernel/refusal.ts";

export const WEBHOOK = refusals({
  webhook_not_configured: [404, "The team has no webhook.", "Write one first."],
  webhook_disabled: [
    409,
    "The team's webhook is off, because its receiver refused for long.",
    "Write the webhook again.",
  ],
  delivery_not_repeatable: [409, "This request is never sent again.", "The platform asks anew when it needs to."],
  invalid_webhook_url: [
    400,
    "The webhook's address is not acceptable.",
    "Use a public https:// address without credentials.",
  ],
  invalid_webhook_secret: [
    400,
    "The webhook's secret is not acceptable.",
    "Use 16 to 256 printable ASCII characters, or leave it out to get one.",
  ],
});
