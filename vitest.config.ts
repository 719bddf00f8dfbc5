import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/soak/**", "**/node_modules/**", "dist/**"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Processes and servers share two cores: more files at once would only make waits longer.
    maxWorkers: 2,
    reporters: ["default"],
  },
});
