import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, entity, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

@entity("compute", "api_key", "A credential of a team. Its text is shown once, when it is made; only its hash is kept.")
@Index({ name: "api_key_team", properties: ["teamId", "id"] })
export class ApiKey {
  @attr.id("The key's id, safe to show.") id!: string;
  @attr.ref("The team.") teamId!: string;
  @attr.ref("The member that the key acts for; null for a key of the team itself.", { nullable: true })
  memberId!: string | null;
  @attr.text("What people call the key.") name!: string;
  /** SHA-256 of the key's text, in hex. */
  @column.text({ unique: true }) hash!: string;
  @attr.text("The last four characters of the key, to tell keys apart.") lastFour!: string;
  @attr.texts("What the key may be used for.") scopes!: string[];
  @attr.at("From when the key is refused; null for a key that does not expire.", { nullable: true })
  expiresAt!: Date | null;
  @attr.at("When the key was revoked.", { nullable: true }) revokedAt!: Date | null;
  @attr.at("When the key was last used, to the minute; null when it never was.", { nullable: true })
  lastUsedAt!: Date | null;
  @attr.at("When the key was made.") createdAt!: Date;
  @attr.ref("The key that made this one; null for one that an operator made.", { nullable: true })
  createdBy!: string | null;
}

const API_KEY_ACTIONS = closed("ApiKeyAction", "What happened to a key, or was refused to it.", [
  "created",
  "revoked",
  "scope_refused",
]);
export type ApiKeyAction = (typeof API_KEY_ACTIONS)[number];

@object("compute", "api_key_audit", "One line of a key's history.")
@Index({ name: "api_key_audit_key", properties: ["keyId", "id"] })
export class ApiKeyAudit {
  @attr.id("The line's id.") id!: string;
  @column.text() teamId!: string;
  @attr.ref("The key.") keyId!: string;
  @attr.oneOf(API_KEY_ACTIONS, "What happened.") action!: ApiKeyAction;
  @attr.ref("The key that did it; null for an operator.", { nullable: true }) byKeyId!: string | null;
  @attr.text("Which scopes were given or refused.", { nullable: true }) detail!: string | null;
  @attr.at("When it happened.") createdAt!: Date;
}
