import type { Keys } from "./keys.ts";
import type { Link, MasterCall } from "./link.ts";
import { keySlot } from "./slot.ts";

/**
 * Deletes every key of the namespace, on every server, and nothing else. SCAN's patterns may find keys of other namespaces
 * (`{prod:…` looks like `{…`), so each key is looked at by the exact grammar before it goes.
 */
export async function wipe(link: Link, keys: Keys): Promise<{ deleted: number }> {
  let deleted = 0;
  for (const master of await link.masters()) {
    for (const pattern of keys.scanPatterns) {
      let cursor = "0";
      do {
        const reply = await master(["SCAN", cursor, "MATCH", pattern, "COUNT", "1000"], true);
        const [next, found] = reply as [string, string[]];
        cursor = next;
        const own = found.filter((key) => keys.owns(key));
        deleted += await unlink(master, own, link.target.cluster);
      } while (cursor !== "0");
    }
  }
  return { deleted };
}

async function unlink(master: MasterCall, keys: readonly string[], cluster: boolean): Promise<number> {
  // A cluster takes only keys of one slot in one command.
  const groups = new Map<number, string[]>();
  for (const key of keys) {
    const slot = cluster ? keySlot(key) : 0;
    groups.set(slot, [...(groups.get(slot) ?? []), key]);
  }
  const counts = await Promise.all([...groups.values()].map((group) => master(["UNLINK", ...group], true)));
  return counts.reduce((sum: number, count) => sum + Number(count), 0);
}
