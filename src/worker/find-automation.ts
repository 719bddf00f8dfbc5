import { isAutomation, type Automation } from "../automation/definition.ts";
import { FleetError } from "../errors.ts";

/** The automation called `name` among a module's default export (one definition or an array of them). */
export function findAutomation(module: unknown, name: string, source: string): Automation {
  const { default: exported } = module as { default?: unknown };
  const found = (Array.isArray(exported) ? exported : [exported]).find(
    (value) => isAutomation(value) && value.name === name,
  );
  if (isAutomation(found)) return found;
  throw new FleetError(
    "FLEET_PROJECT_INVALID",
    `${source}: its default export holds no automation "${name}" any more`,
  );
}
