/**
 * A cluster: one node per master, each call sent to the one that holds the slot of its key.
 *
 * The map of slots is read again (from any node that answers) when a node says MOVED, when one cannot be reached, and while a
 * slot has no owner. A call refused with MOVED or ASK was not carried out, so sending it to the other node is no repeat.
 */
import { monotonicMs } from "../../internal/timers.ts";
import { type Call, Calls } from "./calls.ts";
import type { Route } from "./keep-connected.ts";
import { closeAll, firstTime, type Link, type LinkOptions, type MasterCall } from "./link.ts";
import { Node, park } from "./node.ts";
import { keySlot, SLOT_COUNT } from "./slot.ts";
import { type Address, addressText, type Target } from "./target.ts";

/** Reading the map more often than this would not make it newer. */
const REFRESH_MS = 100;

/** After so many pointers from node to node a call takes a breath before each further one. */
const MAX_REDIRECTS = 4;

export function clusterLink(options: LinkOptions): Link {
  return new ClusterLink(options);
}

class ClusterLink implements Link {
  readonly target: Target;
  readonly #options: LinkOptions;
  readonly #calls: Calls;
  readonly #nodes = new Map<string, Node>();
  /** Slot -> address of its master; empty where nobody is known to serve it. */
  #owners: (string | undefined)[] = Array.from({ length: SLOT_COUNT });
  readonly #restored = new Set<() => void>();
  readonly #opening: ReturnType<typeof firstTime>;
  #refreshing = false;
  #refreshedAt = 0;
  #mapped = false;
  #turn = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.target = options.target;
    this.#calls = new Calls(options.target, options.deadlineMs);
    this.#opening = firstTime(options.target, options.deadlineMs, this.#calls);
    for (const address of options.target.addresses) this.#node(address);
  }

  call(args: readonly string[], options: Parameters<Link["call"]>[1]): Promise<unknown> {
    return this.#calls.make(args, options, (call) => this.#submit(call));
  }

  async masters(): Promise<MasterCall[]> {
    await this.#refresh();
    const addresses = [...new Set(this.#owners)].filter((owner) => owner !== undefined);
    return addresses.map((address) => (args, repeatable) => {
      const node = this.#nodes.get(address);
      return this.#calls.make(args, { repeatable, key: "" }, (call) => node?.send(call));
    });
  }

  subscriberRoute(key: string): Route {
    return { address: (attempt) => this.#subscriberAddress(key, attempt) };
  }

  #subscriberAddress(key: string, attempt: number): Address {
    const owner = this.#nodes.get(this.#owners[keySlot(key)] ?? "");
    if (owner !== undefined && attempt % 2 === 1) return owner.address;
    const up = [...this.#nodes.values()].filter((node) => node.isUp).map((node) => node.address);
    const choice = up.length > 0 ? up : this.target.addresses;
    return choice[this.#turn++ % choice.length] as Address;
  }

  ready(): Promise<void> {
    return this.#opening.done;
  }

  letGo(): void {
    this.#calls.letGo();
  }

  onRestored(listener: () => void): void {
    this.#restored.add(listener);
  }

  close(): Promise<void> {
    return closeAll(this.#calls, this.#nodes.values());
  }

  /** The node at an address, made when it is new. */
  #node(address: Address): Node {
    const id = addressText(address);
    const known = this.#nodes.get(id);
    if (known !== undefined) return known;
    const { target, deadlineMs, log } = this.#options;
    const node = new Node({
      target: { ...target, shown: `redis+cluster://${id}` },
      address,
      deadlineMs,
      calls: this.#calls,
      log,
      submit: (call) => this.#submit(call),
      redirect: (call, reply) => this.#redirect(call, reply),
      onUp: (_, first) => {
        this.#flush();
        if (!this.#mapped || !first) void this.#refresh();
        if (!first) for (const listener of this.#restored) listener();
      },
      onFailure: (_, error) => {
        this.#opening.failed(error);
        void this.#refresh();
      },
    });
    this.#nodes.set(id, node);
    node.start();
    return node;
  }

  /** Sends a call to the owner of its slot, or leaves it waiting for one. */
  #submit(call: Call): void {
    const owner = this.#owners[keySlot(call.options.key)];
    const node = owner === undefined ? undefined : this.#nodes.get(owner);
    if (node === undefined) void this.#refresh();
    else node.send(call);
  }

  #flush(): void {
    for (const call of this.#calls.waiting()) this.#submit(call);
  }

  #redirect(call: Call, reply: string): boolean {
    const match = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(reply);
    if (match === null) return false;
    const [, kind, slot, host, port] = match;
    const from = this.#owners[Number(slot)];
    // An empty host means: the same as that of the node that answered.
    const address = {
      host: host || (from === undefined ? "" : from.slice(0, from.lastIndexOf(":"))),
      port: Number(port),
    };
    const node = this.#node(address);
    if (kind === "MOVED") {
      this.#owners[Number(slot)] = addressText(address);
      void this.#refresh();
    }
    // Two nodes that point at each other for a while (a migration) must not make a busy loop.
    if (node.isUp && ++call.redirects <= MAX_REDIRECTS) node.send(call, kind === "ASK");
    else park(call, (parked) => this.#submit(parked));
    return true;
  }

  /** Reads the map of slots from the first node that answers. */
  async #refresh(): Promise<void> {
    if (this.#refreshing || this.#calls.isClosed) return;
    this.#refreshing = true;
    try {
      const wait = REFRESH_MS - (monotonicMs() - this.#refreshedAt);
      if (this.#mapped && wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      for (const node of this.#nodes.values()) {
        if (node.isUp && (await this.#readMap(node))) break;
      }
    } finally {
      this.#refreshedAt = monotonicMs();
      this.#refreshing = false;
    }
  }

  async #readMap(node: Node): Promise<boolean> {
    let ranges: SlotRange[];
    try {
      const options = { repeatable: false, key: "" };
      ranges = (await this.#calls.make(["CLUSTER", "SLOTS"], options, (call) =>
        node.send(call),
      )) as SlotRange[];
    } catch {
      return false;
    }
    if (ranges.length === 0) return false;
    const owners: (string | undefined)[] = Array.from({ length: SLOT_COUNT });
    const masters = new Set<string>();
    for (const [from, to, [host, port]] of ranges) {
      const address = { host: host || node.address.host, port };
      const id = addressText(address);
      masters.add(id);
      owners.fill(id, from, to + 1);
      this.#node(address);
    }
    this.#owners = owners;
    this.#mapped = true;
    this.#forgetAllBut(masters);
    this.#opening.succeed();
    this.#flush();
    return true;
  }

  /** Nodes that hold no slots any more are left; the seeds stay, as a way back in. */
  #forgetAllBut(masters: ReadonlySet<string>): void {
    const seeds = new Set(this.target.addresses.map(addressText));
    for (const [id, node] of this.#nodes) {
      if (masters.has(id) || seeds.has(id)) continue;
      this.#nodes.delete(id);
      node.close();
    }
  }
}

type SlotRange = [from: number, to: number, master: [host: string | null, port: number], ...unknown[]];
