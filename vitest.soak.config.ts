import { defineConfig } from "vitest/config";

/** `npm run soak`: the tests that take minutes to hours, one after the other; and those that `npm test` runs on one store only, on both. */
export default defineConfig({
  test: {
    include: [
      "test/soak/**/*.test.ts",
      "test/{cli-agreement,cli-operate,cli-pool,cli-state,cli-status,cli-steer,cli-task}.test.ts",
      "test/{config-push,examples-session-pool,fleet-recycle,master-kills,membership-processes}.test.ts",
      "test/{batch-processes,batch-recovery,rest-corpus,rest-verdicts,schedules-handles}.test.ts",
    ],
    env: { TEST_STORES: "all" },
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 6 * 3_600_000,
    hookTimeout: 600_000,
    maxWorkers: 1,
    reporters: ["default"],
  },
});
