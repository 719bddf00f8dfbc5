// Short (`npm test`): a worker process with short times on a SQLite file that somebody deletes, until there is a new one.
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../src/store/open.ts";
import { makeProject } from "./support/cli.ts";
import { projectFiles } from "./support/nemesis-fleet.ts";
import { outage, workerOn } from "./support/outage.ts";

test("a file that is deleted is said so once; when there is a new one, all goes on in that", async () => {
  const cwd = makeProject(projectFiles(4));
  const path = join(cwd, "shared.db");
  const url = `sqlite:${path}`;
  const store = await openStore(url, { namespace: "out", deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const { worker } = await workerOn({ store, flags: ["--store", url, "--namespace", "out"], cwd });
  const said = () => worker.output().match(/store does not answer.*deleted while it was open/g)?.length ?? 0;
  await outage({
    name: "deleted",
    worker,
    store,
    // Longer than what is said of any other trouble stays unsaid.
    ms: 13_000,
    breakIt: () => {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix);
    },
    bites: () =>
      expect
        .poll(() => store.now().catch((error: Error) => error.message), { timeout: 5000 })
        .toMatch(/deleted/),
    mend: async () => {
      expect(said()).toBe(1);
      expect(existsSync(path)).toBe(false);
      await (await openStore(url, { namespace: "out" })).close();
    },
  });
}, 60_000);
