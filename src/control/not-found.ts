import { FleetError } from "../errors.ts";
import { hintFor } from "../internal/suggest.ts";

/** That nothing bears this name, and which name may have been meant. `what` is its kind; of something else, too: `schedule of …`. */
export function notFound(
  what: string,
  name: string,
  names: readonly string[],
  words?: Parameters<typeof hintFor>[2],
): FleetError {
  return new FleetError("FLEET_NOT_FOUND", `there is no ${what} "${name}"; ${hintFor(name, names, words)}`);
}

/** The same of an automation whose desired state was to be changed. */
export function unknownAutomation(name: string, names: readonly string[]): FleetError {
  const hint = hintFor(name, names, { none: "nothing has been deployed yet" });
  return new FleetError("FLEET_NOT_FOUND", `there is no automation "${name}" (${hint}); nothing was changed`);
}
