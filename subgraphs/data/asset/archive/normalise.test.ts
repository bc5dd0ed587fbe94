import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import {
  all,
  archiveOf,
  entriesIn,
  gnuTarOf,
  inPieces,
  type Sample,
  tarOf,
  zipOf,
} from "../../../../tests/support/archive-samples.ts";
import { ARCHIVE_KINDS, type ArchiveKind, type ArchiveLimits } from "./entry.ts";
import { normalisedTar } from "./normalise.ts";

const LIMITS: ArchiveLimits = { files: 100, bytes: 50_000_000, ratio: 100, ratioFloorBytes: 1_000_000 };
let scratch: string;
let zips = 0;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "nodus-archive-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

async function normalise(kind: ArchiveKind, archive: Uint8Array, limits = LIMITS, pieces?: number): Promise<Buffer> {
  if (kind !== "zip") return all(normalisedTar({ kind, bytes: inPieces(archive, pieces) }, limits));
  const file = path.join(scratch, `${++zips}.zip`);
  await writeFile(file, archive);
  return all(normalisedTar({ kind, path: file }, limits));
}

/** The refusal's code, or the tar. */
async function outcome(kind: ArchiveKind, archive: Uint8Array, limits?: ArchiveLimits): Promise<string | Buffer> {
  return normalise(kind, archive, limits).catch((error) => {
    if (error instanceof Refused) return error.kind.code;
    throw error;
  });
}

/** The archive with its first header changed, checksum included. */
function withFirstHeader(tar: Buffer, change: { type: string; size?: string }): Buffer {
  const changed = Buffer.from(tar);
  changed.write(change.type, 156, "latin1");
  if (change.size) changed.write(`${change.size}\0`, 124, "latin1");
  changed.fill(0x20, 148, 156);
  const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return changed;
}

const name = fc.stringMatching(/^[a-zA-Z0-9_ .é-]{1,20}$/).filter((n) => !/^\.+$/.test(n));
const filePath = fc.array(name, { minLength: 1, maxLength: 12 }).map((steps) => steps.join("/"));
/** Trees without a file where another entry needs a folder. */
const tree = fc
  .uniqueArray(fc.record({ path: filePath, content: fc.uint8Array({ maxLength: 3000 }), executable: fc.boolean() }), {
    selector: (s) => s.path,
    maxLength: 12,
  })
  .map((samples) => samples.filter((s) => !samples.some((o) => o.path.startsWith(`${s.path}/`))));

test("every supported archive of a tree becomes the same checked tar, in pieces of any size", async () => {
  await fc.assert(
    fc.asyncProperty(tree, fc.integer({ min: 1, max: 5000 }), async (samples, pieces) => {
      const tars = await Promise.all(
        ARCHIVE_KINDS.map(async (kind) => normalise(kind, await archiveOf(kind, samples), LIMITS, pieces)),
      );
      for (const tar of tars) expect(tar.equals(tars[0]!)).toBe(true);
      const found = await entriesIn(tars[0]!);
      expect(found.map((e) => [e.path, e.content, e.mode])).toEqual(
        samples.map((s) => [s.path, Buffer.from(s.content), s.executable ? 0o755 : 0o644]),
      );
      expect((await normalise("tar", tars[0]!)).equals(tars[0]!)).toBe(true);
    }),
    { numRuns: 30 },
  );
});

const EVIL_PATHS = [
  "/etc/passwd",
  "../out",
  "a/../../out",
  "a/..",
  "..",
  "a\\b",
  "C:/x",
  "a\nb",
  "a/\u0007",
  "ok/../x",
];
const EVIL_TYPES = ["symlink", "link", "character-device", "block-device", "fifo"] as const;
const evil: fc.Arbitrary<Sample> = fc.oneof(
  fc.constantFrom(...EVIL_PATHS).map((p): Sample => ({ path: p, content: "x" })),
  fc.record({ path: filePath, type: fc.constantFrom(...EVIL_TYPES) }),
);

test("one evil entry anywhere in an archive has all of it refused", async () => {
  await fc.assert(
    fc.asyncProperty(tree, evil, fc.nat(), async (samples: Sample[], bad, position) => {
      const at = position % (samples.length + 1);
      const archive = await tarOf([...samples.slice(0, at), bad, ...samples.slice(at)]);
      expect(await outcome("tar", archive)).toBe("unsafe_archive");
    }),
    { numRuns: 80 },
  );
});

test("whatever bytes are changed, an archive is refused or stays safe", async () => {
  const change = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ARCHIVE_KINDS), tree, change, async (kind, samples, changes) => {
      const archive = Buffer.from(await archiveOf(kind, samples));
      for (const [at, value] of changes) archive[at % archive.length] = value;
      const result = await outcome(kind, archive);
      if (typeof result === "string") return;
      const found = await entriesIn(result);
      expect(new Set(found.map((e) => e.path)).size).toBe(found.length);
      for (const entry of found) {
        expect(["file", "directory"]).toContain(entry.type);
        expect(path.posix.join("/root", entry.path).startsWith("/root/")).toBe(true);
        expect(path.posix.normalize(entry.path)).toBe(entry.path);
      }
    }),
    { numRuns: 150 },
  );
});

test("bytes that are no archive are refused as damaged", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ARCHIVE_KINDS), fc.uint8Array({ maxLength: 3000 }), async (kind, bytes) => {
      const zeros = kind === "tar" && bytes.length >= 512 && bytes.every((b) => b === 0);
      if (!zeros) expect(await outcome(kind, bytes)).toBe("invalid_archive");
    }),
    { numRuns: 100 },
  );
});

test("an archive that is cut short anywhere is refused, also between two entries", async () => {
  const samples = [
    { path: "a", content: "a".repeat(700) },
    { path: "b/c", content: "c" },
  ];
  for (const kind of ARCHIVE_KINDS) {
    const archive = await archiveOf(kind, samples);
    // A tar's last block is only the second half of its end marker.
    const whole = kind === "tar" ? archive.length - 512 : archive.length;
    const step = kind === "tar" ? 128 : 1;
    for (let length = 0; length < whole; length += step)
      expect(await outcome(kind, archive.subarray(0, length)), `${kind} cut at ${length}`).toBe("invalid_archive");
  }
}, 60_000);

test.for<[string, Sample[], string]>([
  ["the same path twice", [{ path: "a/b" }, { path: "a/./b" }], "unsafe_archive"],
  ["a file where a folder is", [{ path: "a/b" }, { path: "a" }], "unsafe_archive"],
  ["a file below a file", [{ path: "a" }, { path: "a/b" }], "unsafe_archive"],
  ["a folder where a file is", [{ path: "a" }, { path: "a", type: "directory" }], "unsafe_archive"],
  ["a name longer than a file system takes", [{ path: `a/${"n".repeat(256)}` }], "unsafe_archive"],
  ["a path deeper than is reasonable", [{ path: Array(65).fill("d").join("/") }], "unsafe_archive"],
  ["more files than allowed", Array.from({ length: 101 }, (_, i) => ({ path: `f${i}` })), "too_many_files"],
  [
    "more folders than allowed",
    Array.from({ length: 101 }, (_, i) => ({ path: `d${i}`, type: "directory" as const })),
    "too_many_files",
  ],
  ["more content than allowed", [{ path: "a", content: "x".repeat(1001) }], "asset_too_large"],
])("an archive with %s is refused", async ([, samples, code]) => {
  const limits = { ...LIMITS, bytes: 1000 };
  expect(await outcome("tar", await tarOf(samples), limits)).toBe(code);
});

test("names that differ only in case are different files, and a folder may be listed twice", async () => {
  const tar = await normalise(
    "tar",
    await tarOf([
      { path: "./README", content: "1" },
      { path: "readme", content: "2" },
      { path: "src/", type: "directory" },
      { path: "src", type: "directory" },
      { path: "src//a" },
    ]),
  );
  expect((await entriesIn(tar)).map((e) => e.path)).toEqual(["README", "readme", "src/", "src/a"]);
});

test("content out of all proportion to its archive is refused before it is written out", async () => {
  const tar = await tarOf([{ path: "zeros", content: Buffer.alloc(20_000_000) }]);
  expect(await outcome("tar.gz", gzipSync(tar))).toBe("archive_bomb");
  expect(await outcome("tar.zst", zstdCompressSync(tar))).toBe("archive_bomb");
  expect(await outcome("zip", await zipOf([{ path: "zeros", content: Buffer.alloc(20_000_000) }]))).toBe(
    "archive_bomb",
  );
  expect(await outcome("tar.gz", gzipSync(tar.subarray(0, 900_000)))).toBe("invalid_archive");
});

test("a header that claims to be huge is refused before anything is read for it", async () => {
  const huge = withFirstHeader(await tarOf([{ path: "a", content: "x" }]), { type: "x", size: "77777777777" });
  let read = 0;
  const endless = async function* () {
    yield huge.subarray(0, 512);
    for (;;) {
      read += 65_536;
      yield Buffer.alloc(65_536);
    }
  };
  await expect(all(normalisedTar({ kind: "tar", bytes: endless() }, LIMITS))).rejects.toMatchObject({
    kind: { code: "invalid_archive" },
  });
  expect(read).toBe(0);
});

test("something behind a tar's end is refused: one tool would see it and another not", async () => {
  const [first, second] = [await tarOf([{ path: "a" }]), await tarOf([{ path: "b" }])];
  expect(await outcome("tar", Buffer.concat([first, second]))).toBe("invalid_archive");
  expect(await outcome("tar", Buffer.concat([first, Buffer.alloc(9000)]))).toBeInstanceOf(Buffer);
});

test("a source that fails is not mistaken for a damaged archive", async () => {
  const archive = gzipSync(await tarOf([{ path: "a", content: "x".repeat(5000) }]));
  const broken = async function* () {
    yield archive.subarray(0, 20);
    throw new Error("the sender went away");
  };
  await expect(all(normalisedTar({ kind: "tar.gz", bytes: broken() }, LIMITS))).rejects.toThrow("the sender went away");
});

test("zips with links, paths that lead out, or content other than promised are refused", async () => {
  expect(await outcome("zip", await zipOf([{ path: "l", content: "/etc/passwd", type: "symlink" }]))).toBe(
    "unsafe_archive",
  );
  const renamed = Buffer.from(
    (await zipOf([{ path: "aa/bb", content: "x" }])).toString("latin1").replaceAll("aa/bb", "../bb"),
    "latin1",
  );
  expect(await outcome("zip", renamed)).toBe("unsafe_archive");
  const good = await zipOf([{ path: "a", content: "x".repeat(100) }]);
  const checksum = good.indexOf(Buffer.from([0x50, 0x4b, 0x01, 0x02])) + 16;
  good[checksum]! ^= 1;
  expect(await outcome("zip", good)).toBe("invalid_archive");
});

test("what GNU tar writes in each of its formats is read the same, long names included", async () => {
  const folder = path.join(scratch, "tree");
  await mkdir(path.join(folder, "empty"), { recursive: true });
  await writeFile(path.join(folder, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  const inFormat = async (format: "gnu" | "pax" | "ustar") => normalise("tar", await gnuTarOf(folder, format));
  const plain = await Promise.all([inFormat("gnu"), inFormat("pax"), inFormat("ustar")]);
  for (const tar of plain) expect(tar.equals(plain[0]!)).toBe(true);
  const found = new Map((await entriesIn(plain[0]!)).map((e) => [e.path, e]));
  expect(found.get("run.sh")).toMatchObject({ type: "file", mode: 0o755 });
  expect(found.get("empty/")).toMatchObject({ type: "directory" });
  const deep = path.join(folder, ...Array(9).fill("a-folder-with-a-rather-long-name"));
  await mkdir(deep, { recursive: true });
  await writeFile(path.join(deep, "a-file-with-a-rather-long-name"), "2");
  const [gnu, pax] = await Promise.all([inFormat("gnu"), inFormat("pax")]);
  expect(gnu.equals(pax)).toBe(true);
  const last = (await entriesIn(gnu)).find((e) => e.path.endsWith("a-file-with-a-rather-long-name"));
  expect(last?.path).toBe(path.relative(folder, path.join(deep, "a-file-with-a-rather-long-name")));
  expect(last?.content.toString()).toBe("2");
});

test("the global header that git writes is passed over", async () => {
  const record = "52 comment=0123456789012345678901234567890123456789\n";
  const plain = await tarOf([{ path: "pax_global_header", content: record }, { path: "a" }]);
  const tar = await normalise("tar", withFirstHeader(plain, { type: "g" }));
  expect((await entriesIn(tar)).map((e) => e.path)).toEqual(["a"]);
});
