import { createHash } from "node:crypto";
import type pg from "pg";

/** Something that all processes of a deployment must have alike, although each is told by its own settings. */
export interface Agreement {
  readonly subject: AgreementSubject;
  /** What this process has; only a hash of it leaves the process. */
  readonly value: string;
  /** What the operator is told when another process that runs has something else. */
  readonly refusal: string;
}

/** The first numbers of the locks that stand for each subject; nothing else in the database uses them. */
const SUBJECTS = { masterKey: 471_100_101, objectStore: 471_100_102, localCapacity: 471_100_103 } as const;
export type AgreementSubject = keyof typeof SUBJECTS;

/** Another process of the deployment runs with something else; this one must not run beside it. */
export class Disagreement extends Error {
  override readonly name = "Disagreement";
}

/**
 * Holds on this connection, as long as it lives, what the process has, and throws `Disagreement` when a connection of
 * another process holds something else. Of two that disagree and start at once at least one is refused, as each holds
 * its own before it looks at the others'.
 */
export async function holdAgreements(client: pg.Client, agreements: readonly Agreement[]): Promise<void> {
  for (const { subject, value } of agreements)
    await client.query("select pg_advisory_lock_shared($1::int, $2::int)", [SUBJECTS[subject], hash(value)]);
  for (const { subject, value, refusal } of agreements) {
    const { rows } = await client.query(
      `select 1 from pg_locks
        where locktype = 'advisory' and granted and objsubid = 2 and classid = $1::int::oid and objid <> $2::int::oid
          and database = (select oid from pg_database where datname = current_database()) limit 1`,
      [SUBJECTS[subject], hash(value)],
    );
    if (rows.length > 0) throw new Disagreement(refusal);
  }
}

function hash(value: string): number {
  return createHash("sha256").update(value).digest().readInt32BE(0);
}
