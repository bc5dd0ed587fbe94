import { createRequire } from "node:module";
import { defineConfig } from "vitest/config";

const require = createRequire(import.meta.url);

export default defineConfig({
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: false } },
  // One copy of graphql: without the alias the ESM and CommonJS builds are two realms.
  resolve: { alias: [{ find: /^graphql$/, replacement: require.resolve("graphql") }] },
  test: {
    include: ["**/*.test.ts"],
    exclude: ["node_modules", "dist", ".nodus"],
    globalSetup: ["tests/support/global-setup.ts"],
    setupFiles: ["tests/support/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    // `.ci/run` allows one more try: its machine may starve real processes for seconds. The run names what needed it.
    retry: Number(process.env.NODUS_TEST_RETRIES ?? 0),
  },
});
