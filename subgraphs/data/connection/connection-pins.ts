import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { type RefusalKind, Refused } from "../../../infra/kernel/refusal.ts";
import type { AdmittedConnection, ConnectionPort, ConnectionReference } from "../published.ts";
import type { Connection } from "./connection.entity.ts";
import { CONNECTION_REFERENCE } from "./connection.refusals.ts";
import { credentialPinName, pinConnection, releaseConnections } from "./connection-uses.ts";
import { activeConnectionIds, findConnection } from "./find-connection.ts";

/** Connections for those who run work. */
export const connectionPins: ConnectionPort = {
  async check(q: Queryer, { tenantId, references }): Promise<AdmittedConnection[]> {
    const connections = await judged(q, tenantId, references);
    const active = await activeConnectionIds(
      q,
      connections.map(({ id }) => id),
    );
    references.forEach(({ field }, index) => {
      if (!active.has(connections[index]!.id)) throw new Refused(CONNECTION_REFERENCE.connection_inactive, { field });
    });
    return connections.map(admitted);
  },

  async pin(tx: Tx, { tenantId, references, holderId, now }): Promise<AdmittedConnection[]> {
    const connections = await judged(tx, tenantId, references);
    const firstUse = connections.map(({ id }) => connections.findIndex((c) => c.id === id));
    // One after the other, in order of ids: two admissions then never wait for each other.
    for (const index of [...new Set(firstUse)].sort((a, b) => (connections[a]!.id < connections[b]!.id ? -1 : 1))) {
      const { field } = references[index]!;
      await pinConnection(tx, { tenantId, connectionId: connections[index]!.id, holderId, now, field });
    }
    return connections.map(admitted);
  },

  release: (tx, holderId) => releaseConnections(tx, holderId),
};

/** The connections that are referred to, each fit for its purpose. */
async function judged(q: Queryer, tenantId: string, references: readonly ConnectionReference[]): Promise<Connection[]> {
  const known = new Map<string, Connection | null>();
  for (const { nameOrId } of references)
    if (!known.has(nameOrId)) known.set(nameOrId, await findConnection(q, { tenantId, idOrName: nameOrId }));
  return references.map((reference) => {
    const connection = known.get(reference.nameOrId);
    if (!connection) throw new Refused(CONNECTION_REFERENCE.connection_not_found, { field: reference.field });
    const unfit = unfitFor(reference.purpose, connection);
    if (unfit) throw new Refused(unfit, { field: reference.field });
    return connection;
  });
}

/** Why a connection cannot be used so; null when it can. */
function unfitFor(purpose: ConnectionReference["purpose"], { kind, scope, liveMode }: Connection): RefusalKind | null {
  if (purpose === "live" && !liveMode) return CONNECTION_REFERENCE.live_mode_required;
  if (purpose === "sink" && kind === "wandb") return CONNECTION_REFERENCE.connection_kind;
  return scope === "read" ? CONNECTION_REFERENCE.connection_scope : null;
}

function admitted(connection: Connection): AdmittedConnection {
  const { id, name, kind, secretId, secretVersion, egressHosts, entity, project } = connection;
  return {
    ...{ connectionId: id, name, kind, secretId, secretVersion, egressHosts, entity, project },
    credentialName: credentialPinName(id),
  };
}
