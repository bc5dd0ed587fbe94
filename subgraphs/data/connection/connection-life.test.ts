import { expect, test } from "vitest";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { ConnectionWorld, refusal, WANDB_KEY } from "../../../tests/support/connection-world.ts";
import { until } from "../../../tests/support/until.ts";
import { destroyRetiredSecrets } from "../secret/destroy-retired-secrets.ts";
import { retireSecret } from "../secret/secret.commands.ts";
import { SecretVersion } from "../secret/secret.entity.ts";
import { deleteConnection, listConnections, verifyConnection } from "./connection.commands.ts";
import { ConnectionUse } from "./connection.entity.ts";
import { findConnection } from "./find-connection.ts";

const world = ConnectionWorld.forThisFile();

test("live mode is for an administrator's own key alone, and the team is told who switched it on", async () => {
  const actor = world.administrator();
  await world.put(actor, "WB", WANDB_KEY);
  const ask = { name: "wb", kind: "wandb", secret: "WB", entity: "e", project: "p", liveMode: true } as const;
  const others: Partial<Actor>[] = [
    { role: "member" },
    { role: "team", memberId: null },
    { role: "admin", memberId: null },
    { scopes: ["data:read", "data:write"] },
  ];
  for (const other of others)
    await expect(world.create({ ...actor, ...other }, ask)).rejects.toMatchObject({
      kind: { code: "admin_required", status: 403 },
    });
  expect(await world.create(actor, ask)).toMatchObject({ liveMode: true, entity: "e", project: "p", scope: "write" });
  expect(await world.events(actor)).toMatchObject([
    { type: "connection.verified" },
    { type: "connection.live_mode_enabled", kind: "wandb", secret_version: 1, by: "mem_admin" },
  ]);
});

test("verifying again moves the time on, and what fails leaves it", async () => {
  const actor = world.administrator();
  const made = await world.databaseConnection(actor);
  world.now = new Date("2026-03-02T12:00:00Z");
  const closed = world.deps({ exceptions: new PrivateExceptions([]) });
  await expect(verifyConnection(closed, actor, "shop")).rejects.toMatchObject(refusal("verification_failed"));
  expect(await world.stored(actor)).toMatchObject([{ verifiedAt: made.verifiedAt }]);
  const verified = await verifyConnection(world.deps(), actor, "shop");
  expect(verified).toEqual({ ...made, verifiedAt: world.now });
  expect(await verifyConnection(world.deps(), actor, made.id)).toEqual(verified);
  expect((await world.events(actor)).map(({ type }) => type)).toEqual(Array(3).fill("connection.verified"));
});

test("a new version and a retirement make a connection inactive, once each, and say so", async () => {
  const actor = world.administrator();
  const made = await world.databaseConnection(actor);
  await world.put(actor, "DB", world.postgres.secret());
  await expect(verifyConnection(world.deps(), actor, "shop")).rejects.toMatchObject({
    kind: { code: "connection_inactive", status: 409 },
  });
  await expect(world.pin(actor, made.id, "wl_1")).rejects.toMatchObject({
    kind: { code: "connection_inactive", status: 409 },
  });
  const second = await world.create(actor, { name: "second" });
  await retireSecret(world.database.db, actor, "DB", world.now);
  await expect(world.pin(actor, second.id, "wl_1")).rejects.toMatchObject(refusal("connection_inactive"));
  const told = (await world.events(actor)).filter(({ type }) => type === "connection.inactive");
  expect(told).toMatchObject([
    { connection_id: made.id, secret_version: 1, by: "mem_admin" },
    { connection_id: second.id, secret_version: 2, by: "mem_admin" },
  ]);
});

test.for(["rotated", "retired"])("a secret that is %s while its version is verified is not connected", async (how) => {
  const actor = world.administrator();
  await world.put(actor, "WB", WANDB_KEY);
  const held = Promise.withResolvers<void>();
  world.wandb.behave({ heldUntil: held.promise });
  const before = world.wandb.asked.length;
  const made = world.create(actor, { kind: "wandb", secret: "WB" }).catch((e: unknown) => e);
  await until("the service is asked", () => world.wandb.asked.length > before);
  if (how === "rotated") await world.put(actor, "WB", WANDB_KEY);
  else await retireSecret(world.database.db, actor, "WB", world.now);
  held.resolve();
  expect(await made).toMatchObject(refusal("connection_inactive", { field: "/secret" }));
  expect(await world.stored(actor)).toEqual([]);
});

test("a connection in use is not deleted; once it is let go it is, and its name is free again", async () => {
  const actor = world.administrator();
  const made = await world.databaseConnection(actor);
  await world.pin(actor, made.id, "wl_1");
  await world.pin(actor, made.id, "wl_1");
  await expect(deleteConnection(world.database.db, actor, "shop", world.now)).rejects.toMatchObject({
    kind: { code: "connection_in_use", status: 409 },
    detail: { extra: { holder_id: "wl_1" } },
  });
  await world.release("wl_1");
  await deleteConnection(world.database.db, actor, "shop", world.now);
  expect(await listConnections(world.database.db, actor.tenantId, null, 10)).toEqual([]);
  await expect(deleteConnection(world.database.db, actor, "shop", world.now)).rejects.toMatchObject(
    refusal("not_found"),
  );
  await expect(world.pin(actor, made.id, "wl_2")).rejects.toMatchObject({
    kind: { code: "connection_not_found", status: 400 },
  });
  expect((await world.create(actor)).id).not.toBe(made.id);
  expect((await world.events(actor)).map(({ type }) => type)).toEqual([
    "connection.verified",
    "connection.deleted",
    "connection.verified",
  ]);
});

test("a use and a deletion at the same moment end with one of them, never with both", async () => {
  const actor = world.administrator();
  await world.put(actor, "DB", world.postgres.secret());
  for (let round = 0; round < 8; round++) {
    const { id } = await world.create(actor, { name: `c${round}` });
    const [used, deleted] = await Promise.allSettled([
      world.pin(actor, id, `wl_race_${round}`),
      deleteConnection(world.database.db, actor, id, world.now),
    ]);
    expect([used.status, deleted.status].sort()).toEqual(["fulfilled", "rejected"]);
  }
});

test("work that was admitted goes on with its version after rotation and deletion, as long as that version exists", async () => {
  const actor = world.administrator();
  const made = await world.databaseConnection(actor);
  const { pin: kept } = await world.pin(actor, made.id, "wl_1");
  await world.put(actor, "DB", world.postgres.secret());
  expect((await world.pin(actor, made.id, "load_1", kept)).pin).toEqual(kept);
  await world.release("wl_1");
  await expect(deleteConnection(world.database.db, actor, "shop", world.now)).rejects.toMatchObject(
    refusal("connection_in_use"),
  );
  await world.release("load_1");
  await deleteConnection(world.database.db, actor, "shop", world.now);
  await world.pin(actor, made.id, "load_2", kept);
  const late = new Date(world.now.getTime() + LIMITS.retiredSecretMs + 1);
  await destroyRetiredSecrets(world.database.db, late);
  await world.pin(actor, made.id, "load_3", kept);
  await world.release("load_2");
  await world.release("load_3");
  await destroyRetiredSecrets(world.database.db, late);
  await expect(world.pin(actor, made.id, "load_4", kept)).rejects.toMatchObject(refusal("connection_inactive"));
  expect(await world.database.db.rows(ConnectionUse, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
});

test("a retired version lives as long as a connection pins it, and goes seven days later once it does not", async () => {
  const actor = world.administrator();
  await world.databaseConnection(actor);
  await world.put(actor, "DB", world.postgres.secret());
  const late = new Date(world.now.getTime() + LIMITS.retiredSecretMs + 1);
  const versions = async () =>
    (await world.database.db.rows(SecretVersion, "where t.tenant_id = $1", [actor.tenantId])).length;
  await destroyRetiredSecrets(world.database.db, late);
  expect(await versions()).toBe(2);
  await deleteConnection(world.database.db, actor, "shop", world.now);
  await destroyRetiredSecrets(world.database.db, new Date(late.getTime() - 1));
  expect(await versions()).toBe(2);
  await destroyRetiredSecrets(world.database.db, late);
  expect(await versions()).toBe(1);
});

test("another team's connection is not there: not to read, verify, delete or use", async () => {
  const [owner, stranger] = [world.administrator(), world.administrator()];
  const made = await world.databaseConnection(owner);
  for (const idOrName of [made.id, "shop", "a\0", ""]) {
    expect(await findConnection(world.database.db, { tenantId: stranger.tenantId, idOrName })).toBeNull();
    await expect(verifyConnection(world.deps(), stranger, idOrName)).rejects.toMatchObject(refusal("not_found"));
    await expect(deleteConnection(world.database.db, stranger, idOrName, world.now)).rejects.toMatchObject(
      refusal("not_found"),
    );
  }
  await expect(world.pin(stranger, made.id, "wl_1")).rejects.toMatchObject(refusal("connection_not_found"));
  const kept = { secretId: made.secretId, version: made.secretVersion };
  await expect(world.pin(stranger, made.id, "wl_1", kept)).rejects.toMatchObject(refusal("connection_not_found"));
});
