import type { Link } from "./link.ts";
import type { RunScript } from "./scripts.ts";

/**
 * The set of all names of one kind. On a cluster it lies on another node than what it names, so the two are not written in one step: it may
 * name too much, never too little.
 */
export interface NameIndex {
  /** Before the first use of a name by this process. */
  enter(name: string): Promise<void>;
  /** The store knew nothing of this name: it may have lost the set as well. */
  again(name: string): Promise<void>;
  all(): Promise<string[]>;
}

export function nameIndex(link: Link, run: RunScript, key: string): NameIndex {
  const entered = new Set<string>();
  const add = async (name: string) => {
    await enterName(run, key, name);
    entered.add(name);
  };
  return {
    enter: (name) => (entered.has(name) ? Promise.resolve() : add(name)),
    again: add,
    async all() {
      const names = (await link.call(["SMEMBERS", key], { repeatable: true, key })) as string[];
      return names.toSorted();
    },
  };
}

/** Not by a command of its own, which a server that is short of memory would refuse also for a name that it has. */
export async function enterName(run: RunScript, key: string, name: string): Promise<void> {
  await run("name-enter", { keys: { names: key }, args: { name }, repeatable: true });
}
