// Short (`npm test`): what is kept of a child's standard error when it has ended. Needs dist/.
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { startTalker } from "./support/talker.ts";

const SECRET = "S3CRET-swordfish";
const FROM_FILE = `first line\n${SECRET.repeat(300)}`;

test("values that came by reference are hidden in it, also where it begins in the middle of one", async () => {
  vi.stubEnv("TALKERS_KEY", SECRET);
  onTestFinished(() => void vi.unstubAllEnvs());
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  const { cwd, heard, ends, run } = startTalker(
    `
      import { writeSync } from "node:fs";
      import { defineContinuous } from "fleet-framework";
      export default defineContinuous("talker", {
        runSlot({ config }) {
          writeSync(2, "begins with " + config.file + " and then " + config.key + " the end\\n");
          process.exit(1);
        },
      });`,
    { files: { secret: FROM_FILE } },
  );
  const config = { key: "env:TALKERS_KEY", file: `file:${join(cwd, "secret")}` };
  run(config);
  await vi.waitFor(() => expect(ends).toHaveLength(1), { timeout: 60_000 });
  // More was written than is kept, so the beginning is gone.
  expect(ends[0]?.stderr).toBe(`${config.file} and then env:TALKERS_KEY the end\n`);
  expect(JSON.stringify(heard)).not.toContain("S3CRET");
}, 90_000);
