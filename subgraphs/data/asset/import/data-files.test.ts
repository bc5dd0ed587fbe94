import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { projectFile } from "../../../../infra/telemetry/project-root.ts";
import { DATA_ENDINGS, isDataFile } from "./data-files.ts";

test("the endings that are taken without patterns are published as they are", () => {
  expect(readFileSync(projectFile("docs", "assets.md"), "utf8")).toContain(`\`${DATA_ENDINGS.join(" ")}\``);
});

test.for<[path: string, isData: boolean]>([
  ["data/train.parquet", true],
  ["IMG/CAT.PNG", true],
  ["archive.tar.gz", true],
  ["README.md", false],
  ["csv", false],
  [".csv", false],
  ["a.csv/readme", false],
])("%s: %s", ([path, isData]) => {
  expect(isDataFile(path)).toBe(isData);
});
