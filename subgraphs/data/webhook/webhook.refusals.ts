import { refusals } from "../../../infra/kernel/refusal.ts";

export const WEBHOOK = refusals({
  webhook_not_configured: [404, "The team has no webhook.", "Write one first."],
  invalid_webhook_url: [
    400,
    "The webhook's address is not acceptable.",
    "Use a public https:// address without credentials.",
  ],
  invalid_webhook_secret: [
    400,
    "The webhook's secret is not acceptable.",
    "Use 1 to 1024 bytes of UTF-8, or leave it out to get one.",
  ],
});
