import { Unique } from "@mikro-orm/decorators/legacy";
import { attr, column, entity } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

const WORKSPACE_BILLING = closed("WorkspaceBillingStatus", "Whether a workspace's storage is charged.", [
  "disabled_no_approved_storage_rate",
  "metered_subject_to_account_limits",
]);
export type WorkspaceBilling = (typeof WORKSPACE_BILLING)[number];

@entity("sandboxes", "workspace", "A named folder that outlives the sandboxes which mount it, one at a time.")
@Unique({ name: "workspace_name", properties: ["tenantId", "name"] })
export class Workspace {
  @attr.id("The workspace's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.text("Its name, unique within the team.") name!: string;
  @attr.float("How much it can hold, in GiB.") sizeGb!: number;
  @attr.ref("The sandbox that has it mounted; null when none has.", { nullable: true }) holderId!: string | null;
  @attr.at("When its content was last saved; null before the first time.", { nullable: true }) savedAt!: Date | null;
  @attr.count("Bytes of the last save; null before the first time.", { nullable: true }) storedBytes!: number | null;
  @attr.text("Why the last save failed; null when it did not.", { nullable: true }) lastError!: string | null;
  @attr.flag("Its holder is gone and the last save is still under way.") savingForTermination!: boolean;
  @attr.oneOf(WORKSPACE_BILLING, "Whether its storage is charged.") billingStatus!: WorkspaceBilling;
  @attr.at("When it was made.") createdAt!: Date;
}
