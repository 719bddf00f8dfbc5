import { defineConfig } from "vitest/config";

/** `npm run soak`: the tests that take minutes to hours, one after the other. */
export default defineConfig({
  test: {
    include: ["test/soak/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 6 * 3_600_000,
    hookTimeout: 600_000,
    maxWorkers: 1,
    reporters: ["default"],
  },
});
