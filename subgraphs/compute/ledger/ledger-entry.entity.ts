import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, document, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

/** The books. Every posting debits and credits the same sum, so all entries together are zero, always. */
const LEDGER_ACCOUNT = closed("LedgerAccount", "Which of the platform's books an entry is in.", [
  "customer_credit",
  "compute_revenue",
  "platform_fee_revenue",
  "granted_credit",
  "operator_loss",
  "supplier_cost",
]);
export type LedgerAccount = (typeof LEDGER_ACCOUNT)[number];

/** One side of a posting. Append only. */
@object("compute", "ledger_entry", "One side of a posting in the books; never changed.")
@Index({ name: "ledger_by_subject", properties: ["subjectId", "id"] })
@Index({ name: "ledger_by_tenant", properties: ["tenantId", "id"] })
export class LedgerEntry {
  @attr.id("The entry's id, `le_…`.") id!: string;
  @column.text() tenantId!: string;
  /** What it was posted for: a workload, later a sandbox; the team itself for credits. */
  @attr.ref("What it was posted for.") subjectId!: string;
  @attr.ref("Entries of one posting share this.") correlationId!: string;
  @attr.oneOf(LEDGER_ACCOUNT, "The book.") account!: LedgerAccount;
  @attr.text("`customer_charge`, `settle_close`, `credit_grant`, `operator_loss`, …") entryType!: string;
  @attr.money("Debited.") debitMicros!: bigint;
  @attr.money("Credited.") creditMicros!: bigint;
  @document<Record<string, unknown>, { nullable: true }>("What the entry is based on.", { nullable: true })
  evidence!: Record<string, unknown> | null;
  @attr.at("When it was posted.") createdAt!: Date;
}
