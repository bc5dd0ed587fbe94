import path from "node:path";
import { mergeConfig } from "vitest/config";
import shared from "../../../vitest.config.ts";

/** As the tests are run, for the one file that takes hours. */
const config = mergeConfig(shared, {
  test: { root: path.resolve(import.meta.dirname, "../../.."), testTimeout: 0, disableConsoleIntercept: true },
});
config.test.include = ["tests/load/soak/soak.ts"];
export default config;
