import type { Table } from "../row.ts";

/** The team's one webhook: its secret is in the answer of the PUT alone. */
export const WEBHOOKS: Table = {
  getWebhook: { kind: "graph" },
  putWebhook: { kind: "graph", give: ({ webhook, secret }) => ({ ...webhook, secret }) },
  deleteWebhook: { kind: "graph" },
};
