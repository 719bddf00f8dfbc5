import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    exclude: ["test/soak/**", "**/node_modules/**", "dist/**"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the long ones wait for leases and processes; with more at once these get in each other's way on two cores.
    maxWorkers: 4,
    reporters: ["default"],
    projects: [
      // Files share the process and the modules that they import: loading these anew for each file took twice as long as its tests.
      { extends: true, test: { name: "src", include: ["src/**/*.test.ts"], isolate: false } },
      {
        extends: true,
        test: {
          name: "test",
          include: ["test/**/*.test.ts"],
          isolate: false,
          globalSetup: ["test/support/global-setup.ts"],
        },
      },
    ],
  },
});
