// Short (`npm test`): a worker process with short times on a SQLite file that another process keeps locked for 5 s.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../src/store/open.ts";
import { makeProject } from "./support/cli.ts";
import { projectFiles } from "./support/nemesis-fleet.ts";
import { lockFor } from "./support/nemesis-places.ts";
import { outage, workerOn } from "./support/outage.ts";

test("locked by another process for 5 s", async () => {
  const cwd = makeProject(projectFiles(4));
  const path = join(cwd, "shared.db");
  const url = `sqlite:${path}`;
  const store = await openStore(url, { namespace: "out", deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const { worker } = await workerOn({ store, flags: ["--store", url, "--namespace", "out"], cwd });
  let locked = Promise.resolve();
  await outage({
    name: "locked",
    worker,
    store,
    ms: 4500,
    breakIt: async () => {
      const { holding, released } = lockFor(path, 5000);
      locked = released;
      await holding;
    },
    bites: () =>
      expect(store.registry.pruneWorkers({ offlineMs: 3_600_000 })).rejects.toMatchObject({
        retryable: true,
      }),
    mend: () => locked,
  });
}, 60_000);
