/** Wake-up topics. They carry nothing: who wakes reads rows. */
export const dataTopics = {
  /** Events of a team's account stream. */
  accountEvents: (tenantId: string) => `acct:${tenantId}`,
  /** State and progress of an asset. */
  asset: (assetId: string) => `asset:${assetId}`,
  /** Something is to be sent to a webhook. */
  deliveries: "deliveries",
} as const;
