import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/soak/**", "**/node_modules/**", "dist/**"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the long ones wait for leases and processes; with more at once these get in each other's way on two cores.
    maxWorkers: 3,
    reporters: ["default"],
  },
});
