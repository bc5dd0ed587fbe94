import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { openPost } from "../../../infra/net/post-https.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type Authority, testAuthority } from "../../../tests/support/authority.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import {
  type Answering,
  httpsReceiver,
  isSigned,
  type Receiver,
  status,
} from "../../../tests/support/https-receiver.ts";
import { WebhookDelivery } from "../delivery/delivery.entity.ts";
import { dataEntities } from "../entities.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { readBucketAnswer } from "./bucket-answer.ts";
import { BucketCredentialRequests } from "./bucket-credentials.ts";
import { putWebhook } from "./webhook.commands.ts";

const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const SECRET = "a secret of the receiver";
const LOCAL = new PrivateExceptions(["localhost"]);
const actor = teamKey("team_1");
const ASK = {
  ...{ tenantId: "team_1", workloadId: "wl_1", stageId: "train", generation: 2, input: "corpus" },
  ...{ uri: "s3://bucket/key", region: "eu-west-1", bytes: 1_000, sha256: null },
};
const S3 = {
  access_key_id: "AKIDEXAMPLE",
  secret_access_key: "a-key-that-is-seen-nowhere",
  session_token: "a-token-that-is-seen-nowhere",
  expires_at: "2026-03-01T13:00:00Z",
};

let authority: Authority;
let receiver: Receiver;
let database: TestDatabase;
let clock: FakeClock;

beforeAll(async () => {
  [authority, database] = await Promise.all([testAuthority(), testDatabase(dataEntities)]);
});
afterAll(() => database?.close());
beforeEach(async () => {
  receiver = await httpsReceiver(authority);
  clock = new FakeClock("2026-03-01T12:00:00Z");
  await database.db.sql("truncate data.webhook_delivery, data.webhook");
  const deps = { db: database.db, box, exceptions: LOCAL };
  await putWebhook(deps, actor, { url: `${receiver.origin}/hook`, secret: SECRET }, clock.now());
});
afterEach(() => receiver.close());

/** Asks, letting time pass while the port waits between its tries. */
async function request(over: Partial<typeof ASK> = {}, signal = new AbortController().signal) {
  const poster = openPost({ exceptions: LOCAL, ca: authority.caPem });
  const port = new BucketCredentialRequests({ db: database.db, box, poster, clock, random: () => 0.5 });
  let settled = false;
  const answer = port.request({ ...ASK, ...over }, signal).finally(() => {
    settled = true;
  });
  while (!settled) {
    await clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return answer;
}

const json =
  (value: unknown): Answering =>
  (_, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
const listed = () => database.db.rows(WebhookDelivery, "order by t.id");

test("credentials come back from one signed exchange and are kept nowhere", async () => {
  receiver.answer(json({ ...S3, more: 1 }));
  expect(await request()).toEqual({
    outcome: "granted",
    credentials: {
      scheme: "s3",
      accessKeyId: S3.access_key_id,
      secretAccessKey: S3.secret_access_key,
      sessionToken: S3.session_token,
      expiresAt: new Date(S3.expires_at),
    },
  });
  const [asked] = receiver.received;
  const [noted] = await listed();
  expect(JSON.parse(asked!.body)).toEqual({
    request_id: noted!.id,
    event_type: "bucket_credentials.requested",
    ...{ workload_id: "wl_1", stage_id: "train", generation: 2, input: "corpus", uri: "s3://bucket/key" },
    ...{ region: "eu-west-1", bytes: 1_000, sha256: null },
  });
  expect(isSigned(asked!, SECRET)).toBe(true);
  expect(noted).toMatchObject({ state: "delivered", attempts: 1, body: null, eventId: null, lastError: null });
  const stored = JSON.stringify(await database.db.sql("select * from data.webhook_delivery"));
  expect(stored).not.toContain("seen-nowhere");
  expect(stored).not.toContain("bucket/key");
});

test("a receiver that recovers within three tries is good enough, and each try is signed anew", async () => {
  let tries = 0;
  receiver.answer((received, response) =>
    (++tries < 3 ? status(500) : json({ access_token: "t", expires_at: S3.expires_at }))(received, response),
  );
  expect(await request({ uri: "gs://bucket/key" })).toMatchObject({
    outcome: "granted",
    credentials: { scheme: "gs", accessToken: "t" },
  });
  expect(receiver.received.map(({ headers }) => headers["x-nodus-attempt"])).toEqual(["1", "2", "3"]);
  expect(new Set(receiver.received.map(({ headers }) => headers["x-nodus-signature"])).size).toBe(3);
  expect(receiver.received.every((one) => isSigned(one, SECRET))).toBe(true);
});

test.each<[string, Answering, string, number]>([
  ["always fails", status(500), "refused", 3],
  ["redirects", status(302, { location: "https://example.com/" }), "redirected", 3],
  ["wants no more", status(410), "gone", 1],
  ["answers nonsense", json(["x"]), "invalid_answer", 3],
  ["answers with what has expired", json({ ...S3, expires_at: "2026-03-01T11:00:00Z" }), "invalid_answer", 3],
  ["answers without end", json({ ...S3, filler: "x".repeat(65_536) }), "answer_too_large", 3],
])("a receiver that %s makes the input unavailable, in a word", async (_, answering, error, tries) => {
  receiver.answer(answering);
  expect(await request()).toEqual({ outcome: "unavailable", error });
  expect(receiver.received).toHaveLength(tries);
  expect(await listed()).toMatchObject([{ state: "failed", attempts: tries, lastError: error, dueAt: null }]);
});

test("without a webhook, and for a caller that gave up, nobody is asked", async () => {
  await database.db.sql("update data.webhook set disabled_at = now()");
  expect(await request()).toEqual({ outcome: "unavailable", error: "webhook_off" });
  expect(await request({}, AbortSignal.abort())).toEqual({ outcome: "unavailable", error: "interrupted" });
  expect(receiver.received).toEqual([]);
});

test("only the documented shapes are read, whatever else is sent", () => {
  const now = new Date("2026-03-01T12:00:00Z");
  expect(readBucketAnswer("s3", JSON.stringify({ ...S3, session_token: undefined }), now)).toMatchObject({
    sessionToken: null,
  });
  for (const member of ["access_key_id", "secret_access_key", "expires_at"])
    expect(readBucketAnswer("s3", JSON.stringify({ ...S3, [member]: undefined }), now)).toBeNull();
  fc.assert(
    fc.property(fc.json(), fc.constantFrom("s3" as const, "gs" as const), (text, scheme) => {
      expect(readBucketAnswer(scheme, text, now)).toBeNull();
    }),
  );
  const odd = fc.oneof(
    fc.integer(),
    fc.constant(null),
    fc.constant(""),
    fc.constant("with space"),
    fc.constant("line\n"),
    fc.object(),
  );
  fc.assert(
    fc.property(odd, fc.constantFrom(...Object.keys(S3)), (value, member) => {
      expect(readBucketAnswer("s3", JSON.stringify({ ...S3, [member]: value }), now)).toBeNull();
    }),
  );
});
