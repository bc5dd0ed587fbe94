import { refusals } from "../../../infra/kernel/refusal.ts";

export const GITHUB_ACCOUNT = refusals({
  github_not_connected: [404, "The team has no account at GitHub connected.", "Connect one first."],
  github_token_refused: [
    400,
    "GitHub does not take the token.",
    "Make a token that may read the repositories, and send it whole.",
  ],
  github_unreachable: [
    503,
    "GitHub cannot be asked just now.",
    "Repeat the request shortly. If it stays so, an operator looks at what NODUS_GITHUB_API_URL names.",
  ],
});
