import { attr, entity } from "../../../infra/db/attr.ts";

@entity("compute", "team", "A team: the tenant that owns everything its members and keys make.")
export class Team {
  @attr.id("The team's id; every object of the team carries it as its tenant.") id!: string;
  @attr.text("What people call the team.") name!: string;
  @attr.at("When the team was made.") createdAt!: Date;
}
