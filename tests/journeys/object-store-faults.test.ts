import { randomBytes } from "node:crypto";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { s3Client } from "../../infra/objects/s3-client.ts";
import { type FaultyStore, faultyStore } from "../support/faulty-store.ts";
import { Platform } from "../support/platform.ts";
import { swiftMissing, type TestS3, testS3 } from "../support/swift.ts";
import { until } from "../support/until.ts";
import { ends, script, settles, submit, writes } from "../support/workloads.ts";

const missing = swiftMissing();
const BUCKET = "faults";
const SMALL = randomBytes(100_000);
const UNAVAILABLE = { status: 502, body: { error: "object_store_unavailable" } };
const OUTPUT = "mkdir outputs; echo result > outputs/a.txt; echo printed";

describe.skipIf(missing)(`a platform whose S3 store${missing ? `: ${missing}` : ""}`, () => {
  let server: TestS3;
  let store: FaultyStore;
  let platform: Platform;

  beforeAll(async () => {
    server = await testS3();
    const client = s3Client({ ...server, bucket: BUCKET });
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
    client.destroy();
    store = await faultyStore(server.endpoint);
    platform = await Platform.start({
      S3_ENDPOINT: store.endpoint,
      S3_BUCKET: BUCKET,
      S3_REGION: server.region,
      S3_ACCESS_KEY_ID: server.accessKeyId,
      S3_SECRET_ACCESS_KEY: server.secretAccessKey,
    });
  }, 150_000);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => console.error(platform.lastOutput()));
  });
  afterEach(() => {
    store.turn("well");
  });
  afterAll(async () => {
    await platform?.dispose();
    await store?.close();
    await server?.close();
  }, 60_000);

  const upload = () =>
    platform.admin.rest("uploadAsset", {
      query: { name: `${randomBytes(4).toString("hex")}.bin` },
      body: SMALL,
      headers: { "content-type": "application/octet-stream" },
    });
  const create = () =>
    platform.admin.rest("createWorkload", {
      body: script("true"),
      headers: { "idempotency-key": crypto.randomUUID() },
    });

  /** What a run that ended while the store was away has left, once the store is well again. */
  async function expectWhole(id: string): Promise<void> {
    const path = { id };
    expect(await settles(platform.admin, id, 60_000)).toMatchObject({ status: "completed" });
    const [output] = (await platform.admin.rest("listWorkloadOutputs", { path })).body.outputs;
    const { status } = await platform.admin.rest("downloadWorkloadOutput", { path: { id, name: output.name } });
    expect(status).toBe(200);
    await until(
      "the log is committed",
      async () => {
        const { headers, body } = await platform.admin.rest("getWorkloadLogs", { path });
        expect(body).toBe("printed\n");
        return !headers.has("x-nodus-log-source");
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );
    expect((await upload()).status).toBe(201);
  }

  test("is full says so to who submits, and takes work again once there is room", { timeout: 120_000 }, async () => {
    const running = await submit(platform.admin, script(`sleep 3; ${OUTPUT}`));
    store.turn("full");
    const refused = await until("nothing is admitted", async () => {
      const answer = await create();
      return answer.status === 503 && answer;
    });
    expect(refused.body).toMatchObject({ error: "unavailable", reason: "storage_full" });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await upload()).toMatchObject(UNAVAILABLE);
    store.turn("well");
    await until("work is admitted", async () => (await create()).status === 202, { timeoutMs: 40_000, everyMs: 500 });
    await expectWhole(running);
  });

  test.each(["refusing", "hanging"] as const)(
    "is %s keeps nobody from submitting, and what runs is delivered later",
    { timeout: 150_000 },
    async (mood) => {
      const running = await submit(platform.admin, script(`sleep 3; ${OUTPUT}`));
      store.turn(mood);
      const uploaded = upload();
      const meanwhile = await create();
      expect(meanwhile.status).toBe(202);
      expect(await ends(platform.admin, meanwhile.body.workload_id)).toMatchObject({ status: "completed" });
      await writes(platform.admin, running, "printed");
      await until("its output is tried", () => store.refusedOutputs > 0);
      store.turn("well");
      // One that was refused is told so; one that got no answer is tried again by itself.
      if (mood === "refusing") expect(await uploaded).toMatchObject(UNAVAILABLE);
      else expect((await uploaded).status).toBe(201);
      await expectWhole(running);
    },
  );
});
