import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pinnedNode } from "./hand-over.mjs";

const SETTINGS_FILES = ["tsconfig.json", "tsconfig.build.json", "package-lock.json"];

/** Compiles the sources into `dist/` unless they are what was compiled last. All or nothing: `dist/` is replaced whole. */
export async function build(root, say) {
  const fingerprint = fingerprintOf(root);
  const stamp = path.join(root, "dist", ".sources");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint) return;
  say("Building …");
  removeUnfinished(root);
  const fresh = path.join(root, `dist.new-${process.pid}`);
  const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const { status, error } = spawnSync(
    pinnedNode(root),
    [compiler, "-p", path.join(root, "tsconfig.build.json"), "--outDir", fresh],
    { cwd: root, stdio: ["ignore", 2, "inherit"] },
  );
  if (error || status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    throw new Error(error ? `the compiler cannot be run: ${error.message}` : "the sources do not compile; see above");
  }
  writeFileSync(path.join(fresh, ".sources"), fingerprint);
  putInPlace(fresh, path.join(root, "dist"));
}

/** Makes `fresh` the build. Two builds may end at the same moment: the later one's stays, whole. */
function putInPlace(fresh, place) {
  const former = `${fresh}.former`;
  for (;;) {
    try {
      if (existsSync(place)) renameSync(place, former);
    } catch (error) {
      if (error.code !== "ENOENT") throw error; // else another build takes it away at this moment
    }
    rmSync(former, { recursive: true, force: true });
    try {
      renameSync(fresh, place);
      return;
    } catch (error) {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error; // else another build was put there since
    }
  }
}

/** Folders of builds that were killed. */
function removeUnfinished(root) {
  for (const name of readdirSync(root)) {
    const pid = /^dist\.new-(\d+)(\.former)?$/.exec(name)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(path.join(root, name), { recursive: true, force: true });
  }
}

/** A hash over the path, size and time of change of everything that the compiler is told to read. */
function fingerprintOf(root) {
  const hash = createHash("sha256");
  const add = (file) => {
    const { size, mtimeMs } = statSync(path.join(root, file));
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  };
  const { include } = JSON.parse(readFileSync(path.join(root, "tsconfig.build.json"), "utf8"));
  for (const name of [...SETTINGS_FILES, ...include]) {
    if (!existsSync(path.join(root, name))) continue;
    if (statSync(path.join(root, name)).isFile()) add(name);
    else for (const file of sourcesIn(path.join(root, name))) add(path.join(name, file));
  }
  return hash.digest("hex");
}

function sourcesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).map(String).sort();
  return files.filter((file) => /\.(ts|json)$/.test(file) && !file.endsWith(".test.ts"));
}
