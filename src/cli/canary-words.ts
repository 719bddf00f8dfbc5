// What `fleet status` says of a config on trial. Pure.
import type { CanaryLine, StoppedCanaryLine } from "../control/canary-report.ts";
import { sizeOf } from "../control/config.ts";
import { duration } from "./table.ts";

export function canaryWords(line: CanaryLine): string {
  const size = sizeOf(line.share === null ? { slots: line.count ?? 0 } : { share: line.share });
  const which =
    line.slots === 0
      ? "no slot to try it in"
      : line.slots === 1
        ? `slot 0: ${line.running === 1 ? "runs with it" : "does not run with it yet"}`
        : `slots 0 to ${line.slots - 1}: ${line.running} of ${line.slots} run with it`;
  const refused = line.refused === 0 ? "" : `, ${line.refused} refused it`;
  const others = line.other_slots === 0 ? "" : `; ${crashes(line.other_crashes)} in the other slots`;
  return `canary of ${size} for ${duration(line.seconds * 1000)}, since generation ${line.generation}, by ${line.by}; ${which}${refused}, ${crashes(line.crashes)}${others}`;
}

export function stoppedCanaryWords({ seconds, generation, reason }: StoppedCanaryLine): string {
  return `canary stopped by itself ${duration(seconds * 1000)} ago (generation ${generation}): ${reason}`;
}

function crashes(count: number): string {
  return count === 0 ? "no crash" : count === 1 ? "1 crash" : `${count} crashes`;
}
