/** Wake-up topics. They carry nothing: who wakes reads rows. */
export const dataTopics = {
  /** Events of a team's account stream. */
  accountEvents: (tenantId: string) => `acct:${tenantId}`,
  /** Something is to be sent to a webhook. */
  deliveries: "deliveries",
} as const;
