// A worker while slots are placed, and what it has been given so far.

export interface Load {
  id: string;
  capacity: number;
  /** What it knows and has the labels for. */
  suits: ReadonlySet<string>;
  cordoned: boolean;
  total: number;
  /** Slots per automation. */
  of: Map<string, Set<number>>;
}

/** A slot that has no worker yet. */
export interface Homeless {
  name: string;
  slotId: number;
}

export function hasRoom(load: Load): boolean {
  return load.total < load.capacity;
}

export function fits(load: Load, name: string): boolean {
  return load.suits.has(name) && hasRoom(load);
}

export function share(load: Load, name: string): number {
  return load.of.get(name)?.size ?? 0;
}

/** Which of two workers that suit a slot of `name` rather gets it: that with fewer of them, then with fewer slots. */
export function byShare(name: string): (a: Load, b: Load) => number {
  return (a, b) => share(a, name) - share(b, name) || a.total - b.total;
}

export function put(load: Load, { name, slotId }: Homeless): void {
  load.total += 1;
  const slots = load.of.get(name);
  if (slots === undefined) load.of.set(name, new Set([slotId]));
  else slots.add(slotId);
}

export function move(from: Load, to: Load, slot: Homeless): void {
  from.of.get(slot.name)?.delete(slot.slotId);
  from.total -= 1;
  put(to, slot);
}
