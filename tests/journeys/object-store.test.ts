import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { CreateBucketCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { s3Client } from "../../infra/objects/s3-client.ts";
import { Platform } from "../support/platform.ts";
import { swiftMissing, type TestS3, testS3 } from "../support/swift.ts";
import { script, settles, sha256, submit } from "../support/workloads.ts";

const missing = swiftMissing();
const BUCKET = "platform";
/** More than one part of an upload. */
const LARGE = randomBytes(11 * 1024 * 1024);

describe.skipIf(missing)(`a platform on an S3 store${missing ? `: ${missing}` : ""}`, () => {
  let server: TestS3;
  let client: S3Client;
  let platform: Platform;
  const settings = () => ({
    S3_ENDPOINT: server.endpoint,
    S3_BUCKET: BUCKET,
    S3_REGION: server.region,
    S3_ACCESS_KEY_ID: server.accessKeyId,
    S3_SECRET_ACCESS_KEY: server.secretAccessKey,
  });

  beforeAll(async () => {
    server = await testS3();
    client = s3Client({ ...server, bucket: BUCKET });
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
    platform = await Platform.start(settings());
  }, 150_000);

  afterAll(async () => {
    await platform?.dispose();
    client?.destroy();
    await server?.close();
  }, 60_000);

  test("keeps assets, outputs and logs in the bucket, and gives them back after a restart", {
    timeout: 120_000,
  }, async () => {
    const admin = platform.admin;
    const headers = { "content-type": "application/octet-stream" };
    const asset = await admin.rest("uploadAsset", { query: { name: "large.bin" }, body: LARGE, headers });
    expect(asset).toMatchObject({ status: 201, body: { state: "ready" } });
    const command = 'cat "$NODUS_INPUT_large"/* > large; sha256sum < large; mkdir outputs; mv large outputs/';
    const id = await submit(admin, script(command, { inputs: [{ name: "large", assetId: asset.body.id }] }));
    expect(await settles(admin, id, 60_000)).toMatchObject({ status: "completed" });
    const log = `${sha256(LARGE)}  -\n`;
    expect((await admin.rest("getWorkloadLogs", { path: { id } })).body).toBe(log);

    expect(await platform.stop()).toBe(0);
    await platform.start();
    const [listed] = (await admin.rest("listWorkloadOutputs", { path: { id } })).body.outputs;
    const output = await admin.rest("downloadWorkloadOutput", { path: { id, name: listed.name } });
    expect(sha256(output.bytes)).toBe(listed.sha256);
    expect(output.bytes.includes(LARGE)).toBe(true); // within the tar of the outputs folder
    const asked = await admin.query("query ($id: ID!) { workload(id: $id) { outputs { directUrl } } }", { id });
    const direct = await fetch(asked.workload.outputs[0].directUrl);
    expect(output.bytes.equals(Buffer.from(await direct.arrayBuffer()))).toBe(true);
    expect((await admin.rest("getWorkloadLogs", { path: { id } })).body).toBe(log);

    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
    const folders = Contents.map(({ Key }) => path.dirname(Key!)).sort();
    expect(folders).toEqual(["assets/objects", "results/objects", "results/objects"]); // asset, output, log
    expect(existsSync(path.join(platform.dataDir, "objects"))).toBe(false);
    expect(platform.output).not.toContain(server.secretAccessKey);
  });

  test("does not start on a bucket that is not there, and says which setting to look at", {
    timeout: 60_000,
  }, async () => {
    const start = Platform.start({ ...settings(), S3_BUCKET: "another" }).then((other) => other.dispose());
    await expect(start).rejects.toThrow(/S3_BUCKET: the store at \S+ has no bucket another\. Make it/);
  });
});
