import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { PinnedSecret, SecretPort } from "../published.ts";
import { sealContext } from "./seal-context.ts";
import { SECRET_REFERENCE } from "./secret.refusals.ts";
import type { Sealed, SecretBox } from "./secret-box.ts";
import { isSecretName } from "./secret-value.ts";

interface LiveSecret {
  id: string;
  name: string;
  version: number;
}

interface NewestVersion extends LiveSecret {
  masterKeyId: string;
}

const NEWEST = `select s.id, s.name, s.version, v.master_key_id as "masterKeyId"
   from data.secret s join data.secret_version v on v.secret_id = s.id and v.version = s.version
  where s.tenant_id = $1 and (s.name = any($2) or s.id = any($3)) and s.retired_at is null`;

/** Secrets for those who run work: pinned by name or id at admission, opened only to be handed to the run. */
export class SecretPins implements SecretPort {
  readonly #box: SecretBox;

  constructor(box: SecretBox) {
    this.#box = box;
  }

  async check(q: Queryer, ask: { tenantId: string; names: readonly string[]; field: string }): Promise<string[]> {
    const rows = await q.sql<NewestVersion>(NEWEST, newestOf(ask));
    const found = resolve(ask.names, rows, ask.field);
    this.#requireReadable(found, ask.field);
    return found.map(({ name }) => name);
  }

  async pin(
    tx: Tx,
    ask: { tenantId: string; names: readonly string[]; holderId: string; now: Date; field?: string },
  ): Promise<PinnedSecret[]> {
    const field = ask.field ?? "";
    // The lock on the secret's row keeps its newest version from being replaced and destroyed before the pin is in.
    const live = await tx.sql<NewestVersion>(`${NEWEST} order by s.id for share of s`, newestOf(ask));
    const held = await this.#held(tx, ask.tenantId, ask.holderId);
    const found = resolve(ask.names, [...live, ...held], field);
    this.#requireReadable(found, field);
    const wanted = live.filter((secret) => found.includes(secret));
    await tx.sql(
      `insert into data.secret_pin (holder_id, name, tenant_id, secret_id, version, created_at)
       select $1, s.name, $2, s.id, s.version, $3 from unnest($4::text[], $5::text[], $6::int[]) as s (name, id, version)
       on conflict (holder_id, name) do nothing`,
      [
        ...[ask.holderId, ask.tenantId, ask.now],
        ...[wanted.map((s) => s.name), wanted.map((s) => s.id), wanted.map((s) => s.version)],
      ],
    );
    const pins = new Map((await this.#held(tx, ask.tenantId, ask.holderId)).map((p) => [p.name, p]));
    return found.map(({ name }) => {
      const pin = pins.get(name)!;
      return { name, secretId: pin.id, version: pin.version };
    });
  }

  async reveal(q: Queryer, ask: { tenantId: string; holderId: string }): Promise<{ name: string; value: string }[]> {
    const rows = await q.sql<LiveSecret & Sealed>(
      `select p.name, v.secret_id as id, v.version, v.master_key_id as "masterKeyId", v.wrapped_key as "wrappedKey", v.ciphertext
         from data.secret_pin p join data.secret_version v on v.secret_id = p.secret_id and v.version = p.version
        where p.tenant_id = $1 and p.holder_id = $2 and v.tenant_id = $1 order by p.name`,
      [ask.tenantId, ask.holderId],
    );
    if (rows.some((row) => !this.#box.has(row.masterKeyId))) throw new Refused(SECRET_REFERENCE.secret_unreadable);
    return rows.map((r) => ({
      name: r.name,
      value: this.#box.open(r, sealContext(ask.tenantId, r.id, r.version)).toString("utf8"),
    }));
  }

  async release(tx: Tx, holderId: string): Promise<void> {
    await tx.sql("delete from data.secret_pin where holder_id = $1", [holderId]);
  }

  /** A run whose secrets can't be opened would wait for them for ever; so it is not admitted. */
  #requireReadable(found: readonly (LiveSecret & { masterKeyId?: string })[], field: string): void {
    const unreadable = found.findIndex(({ masterKeyId }) => masterKeyId !== undefined && !this.#box.has(masterKeyId));
    if (unreadable >= 0) throw new Refused(SECRET_REFERENCE.secret_unreadable, { field: `${field}/${unreadable}` });
  }

  /** What a holder keeps under names of secrets; its credentials of connections have other names. */
  async #held(q: Queryer, tenantId: string, holderId: string): Promise<LiveSecret[]> {
    const pins = await q.sql<LiveSecret>(
      "select secret_id as id, name, version from data.secret_pin where tenant_id = $1 and holder_id = $2",
      [tenantId, holderId],
    );
    return pins.filter(({ name }) => isSecretName(name));
  }
}

/** Not every text may be asked of the database. */
function newestOf({ tenantId, names }: { tenantId: string; names: readonly string[] }): unknown[] {
  return [tenantId, names.filter(isSecretName), names.filter((name) => isId("secret", name))];
}

/** What each reference means, in their order: a name comes before an id, because a name may look like one. */
function resolve<T extends LiveSecret>(references: readonly string[], known: readonly T[], field: string): T[] {
  return references.map((reference, index) => {
    const found = known.find((s) => s.name === reference) ?? known.find((s) => s.id === reference);
    if (!found)
      throw new Refused(SECRET_REFERENCE.secret_not_found, {
        field: `${field}/${index}`,
        message: `The team has no secret named ${reference}.`,
      });
    return found;
  });
}
