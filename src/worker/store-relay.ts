import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { attachStoreServer, bearerOf, sameToken } from "../store/remote/server.ts";
import { unixAddress } from "../store/remote/target.ts";
import type { Store } from "../store/store.ts";
import { isAlive, processTable } from "./process-table.ts";

export interface StoreRelay {
  /** Address of the store for the children, and what opens it. */
  readonly url: string;
  readonly token: string;
  /** The children have ended by then. */
  close(): Promise<void>;
}

/** The longest path that every system takes for a socket. */
const LONGEST_PATH = 100;
/** Folders of relays are named by the process table and the process they belong to, so that those of killed workers are known. */
const PREFIX = `fleet-link-${createHash("sha256").update(processTable()).digest("hex").slice(0, 8)}-`;

/**
 * Serves the worker's store to its children on a socket of this machine, where the store is a master's: so a worker has one link to its
 * master, whatever it runs, and the master's token stays in the supervisor. The children get a token that holds for this worker only.
 */
export async function startRelay(store: Store, log: Log): Promise<StoreRelay> {
  const token = `flt_l_${randomBytes(32).toString("base64url")}`;
  const folder = makeFolder(log);
  const path = join(folder, "s");
  const http = createServer((_, response) => response.writeHead(404).end());
  const server = attachStoreServer(http, {
    store,
    authorise: (request) => sameToken(bearerOf(request), token),
    log,
  });
  try {
    http.listen(path);
    await once(http, "listening");
    chmodSync(path, 0o600);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    url: unixAddress(path),
    token,
    async close() {
      await server.close();
      http.closeAllConnections();
      http.close();
      await once(http, "close");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A folder that is this user's alone, with room for a socket's path. */
function makeFolder(log: Log): string {
  const parent = Buffer.byteLength(join(tmpdir(), PREFIX)) > LONGEST_PATH - 20 ? "/tmp" : tmpdir();
  removeLeft(parent, log);
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
}

/** What workers have left that were killed. */
function removeLeft(parent: string, log: Log): void {
  try {
    for (const name of readdirSync(parent)) {
      const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : 0;
      if (pid > 0 && !isAlive(pid)) rmSync(join(parent, name), { recursive: true, force: true });
    }
  } catch (error) {
    log.debug("could not remove what killed workers have left behind", { error: messageOf(error) });
  }
}
