import pg from "pg";
import { instance, selectList, tableOf } from "../../../infra/db/columns.ts";
import type { EntityClass, Queryer } from "../../../infra/db/database.ts";
import { PreparingClient } from "../../../infra/db/preparing-client.ts";

/** PostgreSQL through the driver's own pool and nothing else: named statements, plain rows. */
export class BareDatabase implements Queryer {
  readonly pool: pg.Pool;

  constructor(url: string, connections = 20) {
    this.pool = new pg.Pool({ connectionString: url, max: connections, Client: PreparingClient });
    this.pool.on("error", () => {}); // an idle connection that the server ends; who needs one is told
  }

  async sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return (await this.pool.query(text, [...values])).rows as R[];
  }

  async rows<T extends object>(type: EntityClass<T>, tail: string, values: readonly unknown[] = []): Promise<T[]> {
    const rows = await this.sql<Record<string, unknown>>(
      `select ${selectList(type)} from ${tableOf(type)} t ${tail}`,
      values,
    );
    return rows.map((row) => instance(type, row));
  }

  async row<T extends object>(type: EntityClass<T>, tail: string, values: readonly unknown[] = []): Promise<T | null> {
    return (await this.rows(type, tail, values))[0] ?? null;
  }

  /** One transaction on one connection. */
  async transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    try {
      await client.query("begin");
      const answer = await work(client);
      await client.query("commit");
      return answer;
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  }
}
