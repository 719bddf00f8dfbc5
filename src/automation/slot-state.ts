import { checkSize, encodePayload } from "../contracts/json.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { FleetError } from "../errors.ts";
import type { SlotRef } from "../protocol/spec.ts";
import type { Registry } from "../store/store.ts";
import type { SlotStateValue } from "./context.ts";

/** Most bytes of `ctx.state` as JSON. */
export const MAX_STATE_BYTES = 65_536;

/**
 * `ctx.state`: written only while the slot's lease bears the token that this run was started with, so a late holder cannot
 * overwrite what its successor keeps.
 */
export function slotState(
  registry: Registry,
  slot: SlotRef,
  token: string,
  schema: Schema | undefined,
): SlotStateValue<unknown> {
  const where = `state of ${slot.automation}/${slot.slotId}`;
  const checked = async (value: unknown) => {
    if (schema === undefined) return value;
    const result = await check(schema, value);
    if (!result.ok) throw payloadError(where, result.issues);
    return result.value;
  };
  const store = async (value: string | null) => {
    const outcome = await registry.setState({ ...slot, token, value });
    if (outcome === "lease-lost")
      throw new FleetError(
        "FLEET_LEASE_LOST",
        `${where}: this slot is run elsewhere by now; nothing was written`,
      );
  };
  return {
    get: async () => {
      const json = await registry.getState(slot);
      return json === undefined ? undefined : checked(JSON.parse(json));
    },
    set: async (value) => {
      await checked(value);
      const json = encodePayload(where, value);
      checkSize(where, json, MAX_STATE_BYTES, "keep a cursor here, and the data elsewhere");
      await store(json);
    },
    clear: () => store(null),
  };
}
