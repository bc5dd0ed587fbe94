import { createHmac, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { WebhookDelivery } from "../delivery/delivery.entity.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { deleteWebhook, getWebhook, putWebhook, webhookTarget } from "./webhook.commands.ts";
import { Webhook } from "./webhook.entity.ts";
import { webhookSigner } from "./webhook-signer.ts";

let database: TestDatabase;
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const now = new Date("2026-03-01T12:00:00Z");
const actor = teamKey("team_1");

beforeAll(async () => {
  database = await testDatabase([Webhook, WebhookDelivery]);
});
afterAll(() => database?.close());

const put = (url: string, secret?: string, allowed: string[] = []) =>
  putWebhook({ db: database.db, box, exceptions: new PrivateExceptions(allowed) }, actor, { url, secret }, now);
const target = () => webhookTarget(database.db, box, actor.tenantId);

test("signatures are what OpenSSL makes of timestamp, dot and body", () => {
  const body = Buffer.from('{"event_type":"workload.completed","workload_id":"wl_1"}');
  expect(webhookSigner.sign(body, "whsec_test", 1_700_000_000)).toBe(
    "20f560dcd2569a0c0671994997c25b58da688bfe6782e5b2eb8b36e154ed3dd2",
  );
  expect(webhookSigner.sign(new Uint8Array(0), "k", 0)).toBe(createHmac("sha256", "k").update("0.").digest("hex"));
  expect(webhookSigner.sign(Buffer.from([0xff, 0x00]), "ключ", 1)).toBe(
    createHmac("sha256", Buffer.from("ключ"))
      .update(Buffer.from([0x31, 0x2e, 0xff, 0x00]))
      .digest("hex"),
  );
  expect(() => webhookSigner.sign(body, "k", 1.5)).toThrow(RangeError);
});

test("a team has one webhook, whose secret is told when it is written and never again", async () => {
  await expect(getWebhook(database.db, actor.tenantId)).rejects.toMatchObject({
    kind: { code: "webhook_not_configured" },
  });
  const first = await put("https://example.com/hook#part");
  expect(first).toMatchObject({ url: "https://example.com/hook", enabled: true });
  expect(first.secret).toMatch(/^[0-9a-f]{64}$/);
  expect(await getWebhook(database.db, actor.tenantId)).toMatchObject({
    url: "https://example.com/hook",
    disabledAt: null,
  });
  expect(await target()).toEqual({ url: "https://example.com/hook", secret: first.secret, version: 1 });
  await database.db.sql("update data.webhook set disabled_at = $1", [now]);
  expect(await target()).toBeNull();
  await put("https://example.com/other", "my own sixteen chars");
  expect(await target()).toEqual({ url: "https://example.com/other", secret: "my own sixteen chars", version: 2 });
  expect(await webhookTarget(database.db, box, "team_2")).toBeNull();
  await deleteWebhook(database.db, actor, now);
  await expect(deleteWebhook(database.db, actor, now)).rejects.toMatchObject({
    kind: { code: "webhook_not_configured" },
  });
});

test.for([
  "http://example.com/",
  "ftp://example.com",
  "not a url",
  "",
  "https://user:pw@example.com/",
  "https://localhost/",
  "https://intranet/",
  "https://127.0.0.1/",
  "https://0x7f000001/",
  "https://10.1.2.3/",
  "https://169.254.169.254/",
  "https://[::1]/",
  "https://[fd00::1]/",
  "https://[::ffff:10.0.0.1]/",
  "https://metadata.google.internal./",
  `https://example.com/${"a".repeat(2048)}`,
])("%s is refused as a webhook's address", async (url) => {
  await expect(put(url)).rejects.toMatchObject({
    kind: { code: "invalid_webhook_url", status: 400 },
    detail: { field: "/url" },
  });
});

test("an operator may allow a private receiver, and the secret's length is limited", async () => {
  expect((await put("https://10.1.2.3/", undefined, ["10.1.2.3"])).url).toBe("https://10.1.2.3/");
  for (const secret of ["", "x".repeat(15), "x".repeat(257), "sixteen chars + ä", "sixteen chars +\n"])
    await expect(put("https://example.com/", secret)).rejects.toMatchObject({
      kind: { code: "invalid_webhook_secret" },
      detail: { field: "/secret" },
    });
  for (const secret of ["x".repeat(16), "~ ".repeat(128)])
    expect((await put("https://example.com/", secret)).secret).toBe(secret);
});
