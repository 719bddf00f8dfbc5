// Where an automation's versions or contracts do not agree, in words. Pure.
import { type ContractEdge, edgeWords } from "../control/contract-check.ts";
import { versionWords } from "../control/drift.ts";
import type { AutomationLine } from "../control/status-report.ts";
import type { Finding } from "./explain-automation.ts";

/** So many contracts are named. */
const MOST = 20;

export function explainAgreement(
  { name, versions }: Pick<AutomationLine, "name" | "versions">,
  contracts: readonly ContractEdge[],
): Finding[] {
  const drift: Finding[] =
    versions.length > 1
      ? [
          {
            code: "drift",
            message: `workers have ${versions.length} versions of it: ${versionWords(versions)}`,
          },
        ]
      : [];
  const own = contracts.filter(({ giver, taker }) => [giver.automation, taker.automation].includes(name));
  return [
    ...drift,
    ...own
      .filter(({ outcome }) => outcome !== "ok")
      .slice(0, MOST)
      .map((edge) => ({
        code: `contract-${edge.outcome}`,
        message: `${edge.outcome === "broken" ? "broken contract" : "a contract that cannot be compared"}: ${edgeWords(edge)}`,
      })),
  ];
}
