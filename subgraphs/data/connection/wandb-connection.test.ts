import { expect, test } from "vitest";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { ConnectionWorld, refusal, WANDB_KEY } from "../../../tests/support/connection-world.ts";
import { until } from "../../../tests/support/until.ts";
import type { WandbServer } from "../../../tests/support/wandb-server.ts";

const world = ConnectionWorld.forThisFile();

test("a wandb key is shown to work by asking whose it is", async () => {
  const actor = world.administrator();
  await world.put(actor, "WB", WANDB_KEY);
  const made = await world.create(actor, { name: "wb", kind: "wandb", secret: "WB" });
  expect(made).toMatchObject({ scope: "write", liveMode: false, entity: null });
  expect(made.egressHosts).toEqual(["api.wandb.ai", "files.wandb.ai", "storage.googleapis.com"]);
  expect(world.wandb.asked.at(-1)!.path).toBe("POST /graphql");
  expect(JSON.parse(world.wandb.asked.at(-1)!.body).query).toContain("viewer");
});

test.for<[string, Parameters<WandbServer["behave"]>[0], string]>([
  ["is not let in", { status: 401, text: "" }, "credentials_rejected"],
  ["gets no GraphQL", { status: 200, text: `<html>${WANDB_KEY}` }, "database_refused"],
  ["gets more than an answer", { status: 200, text: " ".repeat(70_000) }, "database_refused"],
  ["is sent elsewhere", { status: 302, text: "" }, "database_refused"],
  ["meets a broken service", { status: 503, text: "" }, "unreachable"],
])("a wandb key that %s fails verification", async ([, how, reason]) => {
  const actor = world.administrator();
  await world.put(actor, "WB", WANDB_KEY);
  world.wandb.behave(how);
  await expect(world.create(actor, { kind: "wandb", secret: "WB" })).rejects.toMatchObject(
    refusal("verification_failed", { extra: { reason } }),
  );
});

test("a wandb key of nobody, an untrusted server and a private one are told apart", async () => {
  const actor = world.administrator();
  await world.put(actor, "WB", "wandb-key-of-nobody");
  const ask = { kind: "wandb", secret: "WB" } as const;
  const failed = (reason: string) => refusal("verification_failed", { extra: { reason } });
  await expect(world.create(actor, ask)).rejects.toMatchObject(failed("credentials_rejected"));
  const untrusted = { wandb: { origin: world.wandb.origin } };
  await expect(world.create(actor, ask, untrusted)).rejects.toMatchObject(failed("tls_untrusted"));
  const byAddress = { wandb: { origin: world.wandb.origin.replace("localhost", "127.0.0.1"), ca: world.wandb.ca } };
  await expect(world.create(actor, ask, byAddress)).rejects.toMatchObject(failed("tls_host_mismatch"));
  const closed = { exceptions: new PrivateExceptions([]) };
  await expect(world.create(actor, ask, closed)).rejects.toMatchObject(failed("private_address"));
});

test("a service that stays silent is given up after five seconds", async () => {
  const actor = world.administrator();
  await world.put(actor, "WB", WANDB_KEY);
  world.wandb.behave("silent");
  const fake = new FakeClock(world.now);
  const before = world.wandb.asked.length;
  const made = world.create(actor, { kind: "wandb", secret: "WB" }, { clock: fake }).catch((e: unknown) => e);
  await until("the service is asked", () => world.wandb.asked.length > before);
  await fake.advance(4_999);
  await fake.advance(1);
  expect(await made).toMatchObject(refusal("verification_failed", { extra: { reason: "timeout" } }));
});
