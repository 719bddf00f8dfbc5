import { expect, it } from "vitest";
import type { ContractEdge } from "../control/contract-check.ts";
import { explainAgreement } from "./explain-agreement.ts";

const edge = (taker: string, over: Partial<ContractEdge> = {}): ContractEdge => ({
  kind: "stream",
  name: "pinger",
  part: "payload",
  giver: { automation: "pinger", version: "1234567890", workers: ["w1"] },
  taker: { automation: taker, version: "abc", workers: ["w2"] },
  outcome: "broken",
  pointer: "/n",
  words: "may be left out, but is required",
  ...over,
});

it("says nothing where all agree", () => {
  const versions = [{ version: "1", workers: ["w1", "w2"] }];
  expect(explainAgreement({ name: "pinger", versions }, [edge("x", { outcome: "ok" })])).toEqual([]);
});

it("names versions that differ, and contracts of this automation that are broken or not known", () => {
  const versions = [
    { version: "aaaaaaaaaaaa", workers: ["w1"] },
    { version: "bbbbbbbbbbbb", workers: ["w2", "w3", "w4", "w5", "w6", "w7"] },
  ];
  const unknown = edge("other", { outcome: "unknown", pointer: "", words: "is given without a schema" });
  expect(explainAgreement({ name: "pinger", versions }, [edge("reader"), unknown])).toEqual([
    {
      code: "drift",
      message: "workers have 2 versions of it: w1 has aaaaaaaa, w2, w3, w4, w5, w6 and 1 more have bbbbbbbb",
    },
    {
      code: "contract-broken",
      message:
        'broken contract: stream "pinger" from pinger@12345678 to reader@abc: /n may be left out, but is required',
    },
    {
      code: "contract-unknown",
      message:
        'a contract that cannot be compared: stream "pinger" from pinger@12345678 to other@abc: the payload is given without a schema',
    },
  ]);
  expect(explainAgreement({ name: "reader", versions: [] }, [edge("reader"), unknown])).toHaveLength(1);
});
