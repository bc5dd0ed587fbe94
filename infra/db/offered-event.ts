/** Something that happened, for whoever else has to know of it by the commit of the transaction that made it happen. */
export interface OfferedEvent {
  tenantId: string;
  /** `evt_…` */
  eventId: string;
  /** Such as `workload.completed`. */
  type: string;
  /** What the payload does not say of itself, such as `{workload_id}`, in wire spelling. */
  subject?: Readonly<Record<string, string>>;
  /** Wire spelling. */
  payload: Readonly<Record<string, unknown>>;
  now: Date;
}
