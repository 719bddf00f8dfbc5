import { FleetError } from "../errors.ts";
import { redactUrl } from "../internal/redact.ts";
import { storeKind } from "../store/open.ts";
import type { Target } from "./target.ts";

export interface Join {
  /** Address of the master. */
  url: string;
  token: string | undefined;
  /** All traffic goes through the master, whatever it says. */
  viaMaster: boolean;
  /** Named beside it: must be the one that the master serves. */
  namespace: string | undefined;
}

/**
 * What a worker that joins a master works on: the store's address as the master gives it, or the master itself. Throws
 * `FLEET_STORE_URL_INVALID`, `FLEET_TOKEN_REFUSED` or `FLEET_STORE_UNAVAILABLE`.
 */
export async function joinTarget({ url, token, viaMaster, namespace }: Join): Promise<Target> {
  const shown = redactUrl(url);
  if (!/^https?:/i.test(url) || storeKind(url) !== "remote")
    throw new FleetError(
      "FLEET_STORE_URL_INVALID",
      `--join is ${JSON.stringify(shown)}, which is no address of a master; it looks like http://host:4400 or https://host`,
    );
  if (token === undefined)
    throw new FleetError(
      "FLEET_USAGE",
      "--join needs the master's token: set FLEET_TOKEN, or give --token; on the master it is kept in .fleet/token",
    );
  // A link to a master on which another namespace is named is refused there.
  const served: Target = { url, shown, namespace: namespace ?? "", token };
  if (viaMaster) return served;
  // The client brings the shapes of all routes, which a worker that joins no master does without.
  const { createClient } = await import("../client/client.ts");
  const fleet = await createClient({ url, token }).joinFleet();
  if (namespace !== undefined && namespace !== fleet.namespace)
    throw new FleetError(
      "FLEET_STORE_INCOMPATIBLE",
      `${shown}: the master serves ${fleet.namespace === "" ? "no namespace" : `the namespace "${fleet.namespace}"`}, not "${namespace}"; leave out --namespace (FLEET_NAMESPACE), or join another master`,
    );
  return fleet.store === null
    ? served
    : { url: fleet.store, shown: redactUrl(fleet.store), namespace: fleet.namespace };
}
