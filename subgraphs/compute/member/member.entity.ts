import { Unique } from "@mikro-orm/decorators/legacy";
import { attr, entity } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

export const MEMBER_ROLES = closed("MemberRole", "What a member of a team may do.", ["admin", "member"]);
export type MemberRole = (typeof MEMBER_ROLES)[number];

@entity("compute", "member", "A person of a team.")
@Unique({ name: "member_email", properties: ["teamId", "email"] })
export class Member {
  @attr.id("The member's id.") id!: string;
  @attr.ref("The team.") teamId!: string;
  @attr.text("E-mail address, in lower case; unique within the team.") email!: string;
  @attr.text("What people call the member.") name!: string;
  @attr.oneOf(MEMBER_ROLES, "Administrators manage members, keys and spending.") role!: MemberRole;
  @attr.at("When the member joined.") createdAt!: Date;
}
