import { refusals } from "../../../infra/kernel/refusal.ts";

export const EXPORT = refusals({
  invalid_query: [
    400,
    "The query is not one SELECT.",
    "Send one statement that begins with SELECT or WITH and only reads.",
  ],
  branch_mismatch: [
    400,
    "The branch is not the connection's.",
    "Leave the branch out, or create a connection for that branch.",
  ],
});
