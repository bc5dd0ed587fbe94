import type { EntityClass } from "../infra/db/database.ts";
import { IdempotencyKey } from "../infra/db/idempotency.ts";
import { OutboxRow } from "../infra/db/outbox.ts";
import { computeEntities } from "../subgraphs/compute/entities.ts";
import { dataEntities } from "../subgraphs/data/entities.ts";
import { poolsEntities } from "../subgraphs/pools/entities.ts";
import { sandboxesEntities } from "../subgraphs/sandboxes/entities.ts";

/** Every table of the deployment: each process registers all of them, so that a port runs locally wherever it is called. */
export const allEntities: readonly EntityClass[] = [
  OutboxRow,
  IdempotencyKey,
  ...computeEntities,
  ...dataEntities,
  ...poolsEntities,
  ...sandboxesEntities,
];
