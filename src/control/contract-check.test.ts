import { expect, it } from "vitest";
import { z } from "zod";
import { defineBatch } from "../automation/definition-batch.ts";
import { type Automation, defineContinuous } from "../automation/definition.ts";
import type { Used } from "../automation/definition-options.ts";
import { manifestOf } from "../automation/manifest.ts";
import { definePool } from "../contracts/pool.ts";
import { defineQueue } from "../contracts/queue.ts";
import { defineStream } from "../contracts/stream.ts";
import { defineTopic } from "../contracts/topic.ts";
import type { Manifest, UseDirection } from "../protocol/manifest.ts";
import { checkContracts, edgeWords, liveManifests } from "./contract-check.ts";

const Text = z.object({ v: z.string() });
const Num = z.object({ v: z.number() });

function uses(name: string, used: Partial<Record<UseDirection, Used[]>>, version = "1"): Manifest {
  return manifestOf(defineContinuous(name, { uses: used, runSlot: async () => {} }) as Automation, version);
}
function emits(name: string, schema: z.ZodType, version = "1"): Manifest {
  return manifestOf(defineContinuous(name, { output: schema, runSlot: async () => {} }), version);
}
function runs(name: string, payload: z.ZodType, version = "1"): Manifest {
  return manifestOf(defineBatch(name, { tasks: { payload }, runOne: () => null }), version);
}
/** `kind name giver→taker outcome`, for all edges. */
const short = (manifests: Record<string, Manifest[]>) =>
  checkContracts(manifests).map(
    ({ kind, name, part, giver, taker, outcome }) =>
      `${kind} ${name}${part === "tags" ? " tags" : ""} ${giver.automation}@${giver.version}→${taker.automation}@${taker.version} ${outcome}`,
  );

it("follows what is given: from a stream's owner, to a queue's, between those of pools and topics", () => {
  const pool = (payload: z.ZodType) => definePool("sessions", { payload });
  const manifests = {
    w1: [
      emits("pinger", Text),
      uses("reader", { pop: [defineStream("pinger", Num)] }),
      runs("scraper", Num),
      uses("asker", { submit: [defineQueue("scraper", Text)] }),
      uses("maker", { put: [pool(Text)], publish: [defineTopic("t", Text)] }),
      uses("user", { claim: [pool(Num)], subscribe: [defineTopic("t", Num)] }),
    ],
  };
  expect(short(manifests)).toEqual([
    "pool sessions maker@1→user@1 broken",
    "pool sessions tags maker@1→user@1 ok",
    "queue scraper asker@1→scraper@1 broken",
    "stream pinger pinger@1→reader@1 broken",
    "topic t maker@1→user@1 broken",
  ]);
  const [first] = checkContracts(manifests);
  expect(first).toMatchObject({
    pointer: "/v",
    giver: { automation: "maker", version: "1", workers: ["w1"] },
  });
  expect(edgeWords(first as never)).toBe(
    'pool "sessions" from maker@1 to user@1: /v is given as a text, but taken as a number',
  );
});

it("compares each version for itself, and names all workers that have it", () => {
  const reader = uses("reader", { pop: [defineStream("pinger", Text)] });
  const edges = checkContracts({
    w1: [emits("pinger", Text, "1"), reader],
    w2: [emits("pinger", Num, "2"), reader],
    w3: [emits("pinger", Num, "2")],
  });
  expect(edges).toMatchObject([
    {
      outcome: "ok",
      giver: { version: "1", workers: ["w1"] },
      taker: { workers: ["w1", "w2"] },
      pointer: null,
      words: null,
    },
    { outcome: "broken", giver: { version: "2", workers: ["w2", "w3"] }, pointer: "/v" },
  ]);
});

it("takes whatever comes where no schema is named, and does not know what is given without one", () => {
  const plain = { kind: "topic", name: "t" };
  expect(
    short({
      w: [
        uses("typed", { publish: [defineTopic("t", Text)], subscribe: [defineTopic("t", Text)] }),
        uses("plain", { publish: [plain], subscribe: [plain] }),
      ],
    }),
  ).toEqual([
    "topic t plain@1→plain@1 ok",
    "topic t plain@1→typed@1 unknown",
    "topic t typed@1→plain@1 ok",
    "topic t typed@1→typed@1 ok",
  ]);
});

it("compares the tags of pools", () => {
  const pool = (tags: z.ZodObject) => definePool("sessions", { payload: Text, tags });
  const maker = uses("maker", { put: [pool(z.object({ site: z.enum(["a", "b"]) }))] });
  const user = uses("user", { claim: [pool(z.object({ site: z.enum(["a"]) }))] });
  const edge = checkContracts({ w: [maker, user] }).find(({ part }) => part === "tags");
  expect(edge).toMatchObject({ outcome: "broken", pointer: "/site" });
  expect(edgeWords(edge as never)).toContain(': tag /site may be given as "b", which is not taken');
});

it("counts only workers that are not offline", () => {
  const live = { id: "w1", draining: true, expiresAt: 11 };
  const gone = { id: "w2", draining: false, expiresAt: 10 };
  const silent = { id: "w3", draining: false, expiresAt: 11 };
  const manifests = { w1: [emits("a", Text)], w2: [emits("b", Text)] };
  expect(liveManifests(manifests, [live, gone, silent], 10)).toEqual({ w1: manifests.w1, w3: [] });
});
