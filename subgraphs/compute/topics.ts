/** Wake-up topics. They carry nothing: who wakes reads rows. */
export const topics = {
  /** Status, events, outputs and money of a workload. */
  workload: (workloadId: string) => `wl:${workloadId}`,
  /** New log bytes of a workload. */
  log: (workloadId: string) => `log:${workloadId}`,
  /** What is wanted of an order changed: intake tells its host. */
  order: (orderId: string) => `ord:${orderId}`,
  /** Capacity came free or was added: waiting stages may be tried. */
  capacity: "capacity",
} as const;
