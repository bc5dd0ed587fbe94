import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { extract, type Header, pack } from "tar-stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HostFixture } from "../testing/host-fixture.ts";
import { filesBelow, REBUILDABLE, tarOf } from "./output-tar.ts";
import { UnsafeArchive, unpackTar } from "./safe-tar.ts";

type Entry = Partial<Header> & { name: string; content?: string };

async function tar(...entries: Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content, ...header } of entries) archive.entry(header as Header & { name: string }, content ?? "");
  archive.finalize();
  return buffer(Readable.from(archive));
}

async function untar(bytes: Buffer): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  const unpacker = extract();
  Readable.from([bytes]).pipe(unpacker);
  for await (const entry of unpacker)
    files[`${entry.header.name} ${entry.header.mode?.toString(8)}`] = (await buffer(entry)).toString();
  return files;
}

describe("unpackTar", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "unpack-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const limits = { files: 10, bytes: 1_000, uid: null };
  const unpack = (bytes: Buffer) => unpackTar(Readable.from([bytes]), folder, limits);

  it("writes files and folders, and keeps what is executable so", async () => {
    await unpack(
      await tar(
        { name: "./a/b.txt", content: "hello" },
        { name: "empty/", type: "directory" },
        { name: "run.sh", mode: 0o755, content: "x" },
      ),
    );
    expect(readFileSync(join(folder, "a/b.txt"), "utf8")).toBe("hello");
    expect(
      execFileSync("find", [".", "-type", "f", "-printf", "%m %p\n"], { cwd: folder, encoding: "utf8" })
        .split("\n")
        .sort(),
    ).toEqual(["", "644 ./a/b.txt", "755 ./run.sh"]);
  });

  const hostile: [string, Entry[]][] = [
    ["a path that climbs out", [{ name: "../x", content: "x" }]],
    ["a path that climbs out later", [{ name: "a/../../x", content: "x" }]],
    ["an absolute path", [{ name: "/etc/x", content: "x" }]],
    ["a symbolic link", [{ name: "x", type: "symlink", linkname: "/etc" }]],
    ["a hard link", [{ name: "x", type: "link", linkname: "/etc/passwd" }]],
    ["a device", [{ name: "x", type: "character-device", devmajor: 1, devminor: 3 }]],
    ["a pipe", [{ name: "x", type: "fifo" }]],
    [
      "a name that comes twice",
      [
        { name: "x", content: "1" },
        { name: "x", content: "2" },
      ],
    ],
    [
      "a file that is a folder as well",
      [
        { name: "x", content: "1" },
        { name: "x/y", content: "2" },
      ],
    ],
    ["more bytes than allowed", [{ name: "x", content: "1".repeat(1_001) }]],
    ["more files than allowed", Array.from({ length: 11 }, (_, i) => ({ name: `f${i}`, content: "" }))],
  ];
  it.each(hostile)("refuses %s", async (_what, entries) => {
    await expect(unpack(await tar(...entries))).rejects.toBeInstanceOf(UnsafeArchive);
  });

  it("fails on an archive that is cut off", async () => {
    const whole = await tar({ name: "x", content: "y".repeat(900) });
    await expect(unpack(whole.subarray(0, 700))).rejects.toThrow();
  });
});

describe("an output archive", () => {
  it("is equal for equal files, whatever their times, owners and order of creation", async () => {
    const digests = [];
    for (const names of [
      ["b", "a", "ä"],
      ["ä", "a", "b"],
    ]) {
      const folder = mkdtempSync(join(tmpdir(), "outputs-"));
      for (const name of names) writeFileSync(join(folder, name), `content of ${name}`);
      execFileSync("touch", ["-d", `200${digests.length}-01-01`, join(folder, "a")]);
      digests.push(
        createHash("sha256")
          .update(await buffer(tarOf(await filesBelow(folder, REBUILDABLE, 10))))
          .digest("hex"),
      );
      rmSync(folder, { recursive: true });
    }
    expect(digests[0]).toBe(digests[1]);
  });
});

describe("files of an order", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start();
  });
  afterAll(() => host?.stop());

  it("are staged before the command starts: source into its folder, each input into one of its own", async () => {
    const source = host.intake.object(
      "source.tar",
      await tar(
        {
          name: "main.sh",
          mode: 0o755,
          content: "#!/bin/sh\ncat lib/x $NODUS_INPUT_data/d.csv $NODUS_INPUT_model/model.bin; echo more >> lib/x",
        },
        { name: "lib/x", content: "lib;" },
      ),
      "tar",
    );
    const inputs = [
      { name: "data", object: host.intake.object("data.tar", await tar({ name: "d.csv", content: "csv;" }), "tar") },
      { name: "model", object: host.intake.object("model.bin", Buffer.from("weights\n"), "file") },
    ];
    const order = await host.run(["./main.sh"], { source, inputs });
    expect(order.log.toString()).toBe("lib;csv;weights\n");
    expect(order.exit?.code).toBe(0);
  });

  it("fail the order as staging when their bytes are not the announced ones", async () => {
    const object = host.intake.object("data", Buffer.from("right"), "file");
    host.intake.objects.set(object.sha256, Buffer.from("wrong"));
    const order = await host.run(["true"], { inputs: [{ name: "data", object }] });
    expect(order.exit).toMatchObject({ code: null, startFailure: { kind: "staging" } });
    expect(order.exit?.startFailure?.message).toContain("SHA-256 differs");
    const absent = await host.run(["true"], { source: { ...object, sha256: "0".repeat(64), format: "tar" } });
    expect(absent.exit?.startFailure).toMatchObject({ kind: "staging", message: expect.stringContaining("404") });
  });

  it("are archived from outputs/ and results/ when nothing is declared, without links and caches", async () => {
    const script =
      "mkdir -p outputs/sub outputs/__pycache__ outputs/.nodus results empty; echo a > outputs/a; echo b > outputs/sub/b; chmod +x outputs/sub/b; ln -s /etc/passwd outputs/link; ln -s /etc outputs/etc; echo c > outputs/__pycache__/c; echo n > outputs/.nodus/n; mkfifo outputs/pipe";
    const order = await host.run(["sh", "-c", script]);
    expect(order.of("output")).toMatchObject([{ name: "outputs.tar", media: "application/x-tar", isTar: true }]);
    const [output] = order.of("output");
    const bytes = host.intake.objects.get(output!.sha256)!;
    expect(bytes.length).toBe(output!.bytes);
    expect(await untar(bytes)).toEqual({ "a 644": "a\n", "sub/b 755": "b\n" });
    expect(order.records.at(-1)?.type).toBe("end");
  });

  it("are taken from the declared paths alone, each failing by itself", async () => {
    const script =
      "mkdir -p outputs dir; echo no > outputs/x; echo '{}' > m.json; echo x > dir/x; ln -s /etc/passwd link; ln -s /etc etc; exit 9";
    const outputs = { metrics: "m.json", folder: "dir", absent: "nowhere", link: "link", through: "etc/hostname" };
    const order = await host.run(["sh", "-c", script], { outputs });
    expect(order.exit?.code).toBe(9);
    expect(order.of("output")).toMatchObject([
      {
        name: "metrics",
        media: "application/json",
        isTar: false,
        bytes: 3,
        sha256: createHash("sha256").update("{}\n").digest("hex"),
      },
      { name: "folder", isTar: true },
    ]);
    expect(order.of("output_failed").map((record) => [record.name, record.reason])).toEqual([
      ["absent", "nowhere does not exist"],
      ["link", "link is a link or no regular file"],
      ["through", "etc/hostname is a link or no regular file"],
    ]);
  });

  it("are refused as outputs beyond the limit", async () => {
    const order = await host.run(["sh", "-c", "head -c 2000 /dev/zero > a; echo b > b"], {
      outputs: { a: "a", b: "b" },
      limits: { outputBytes: 1_000 },
    });
    expect(order.of("output_failed")).toMatchObject([
      { name: "a", reason: expect.stringContaining("larger than the 1000 bytes") },
    ]);
    expect(order.of("output")).toMatchObject([{ name: "b" }]);
  });

  it("are removed, and the end is told, although folders were nested deeper than a path can say", async () => {
    const nest =
      "import os\nos.mkdir('outputs'); os.chdir('outputs')\nfor _ in range(2100): os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()";
    const order = await host.run(["python3", "-c", nest]);
    expect(order.exit?.code).toBe(0);
    expect(order.of("output_failed")).toMatchObject([{ name: "outputs.tar" }]);
    const { until } = await import("../testing/host-fixture.ts");
    await until(() => readdirSync(join(host.folder, "h", "orders")).length === 0, "its files are removed");
  });

  it("are not collected from a cancelled command, and are removed although the guest closed them", async () => {
    const order = await host.run([
      "sh",
      "-c",
      "mkdir -p outputs/closed; echo x > outputs/x; chmod 000 outputs/closed outputs; kill -9 $$",
    ]);
    expect(order.of("end")).toHaveLength(1);
    const { orderSpec, until } = await import("../testing/host-fixture.ts");
    const cancelled = await host.launch(
      orderSpec([
        "sh",
        "-c",
        "mkdir outputs; echo x > outputs/x; echo ready; trap 'exit 0' TERM; while :; do sleep 0.05; done",
      ]),
    );
    await until(() => cancelled.log.includes("ready"), "it runs");
    host.intake.want(cancelled, { want: "cancel" });
    await until(() => cancelled.ended, "it ends");
    expect(cancelled.exit).toMatchObject({ code: 0, killedBy: "cancel" });
    expect(cancelled.of("output")).toEqual([]);
  });
});
