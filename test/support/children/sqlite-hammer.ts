// Pushes, pops and beats on one SQLite file at a steady pace, with other processes doing the same; then tells what it saw.
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { readInput, tell } from "./ipc.ts";

export interface HammerInput {
  url: string;
  /** Tells the processes apart: payloads are `name:1`, `name:2`, … */
  name: string;
  forMs: number;
}
export type HammerMessage =
  | { opened: string }
  | { pushed: number; popped: string[]; claimed: string[]; errors: string[]; lagMs: number[] };

const BATCH = 5;
const PACE_MS = 5;

const { url, name, forMs } = await readInput<HammerInput>();
// A slow machine is no refusal: what is looked for are calls that fail although there was time.
const store = await openSqliteStore(url, { deadlineSeconds: 30 });
const bounds = { maxLength: 1_000_000, ttlMs: 3_600_000, maxPayloadBytes: 262_144 };
await store.streams.declare({ stream: "s", bounds, as: "owner" });
await tell({ opened: store.fleetId });
await new Promise((resolve) => process.once("message", resolve));

const errors: string[] = [];
const popped: string[] = [];
const claimed: string[] = [];
const lagMs: number[] = [];
let pushed = 0;
let calls = 0;

let expected = performance.now() + 10;
const measuring = setInterval(() => {
  const now = performance.now();
  lagMs.push(Math.max(0, now - expected));
  expected = now + 10;
}, 10);

const note = (error: unknown) => void errors.push(String(error));

async function push(): Promise<void> {
  const entries = Array.from({ length: BATCH }, (_, i) => {
    const payload = JSON.stringify(`${name}:${pushed + i + 1}`);
    return { id: `${name}-${pushed + i}`, head: `{"ts":`, tail: `,"payload":${payload}}` };
  });
  pushed += BATCH;
  const op = { producer: name, seq: ++calls };
  const result = await store.streams.push({ stream: "s", entries, op });
  if (result.outcome !== "pushed") errors.push(result.outcome);
}

async function pop(): Promise<void> {
  for (const raw of await store.streams.pop({ stream: "s", n: BATCH })) {
    popped.push((JSON.parse(raw) as { payload: string }).payload);
  }
}

async function claim(): Promise<void> {
  const slots = [{ automation: "a", slotId: calls % 3 }];
  const held = await store.registry.claimSlots({ workerId: name, incarnation: name, leaseMs: 60_000, slots });
  for (const { slotId, token } of held) claimed.push(`${slotId}/${token}`);
  await store.registry.releaseSlots({ leases: held });
}

const end = performance.now() + forMs;
while (performance.now() < end) {
  await Promise.all([push().catch(note), pop().catch(note), claim().catch(note)]);
  await new Promise((resolve) => setTimeout(resolve, PACE_MS));
}
clearInterval(measuring);
await store.close();
await tell({ pushed, popped, claimed, errors, lagMs });
process.disconnect();
