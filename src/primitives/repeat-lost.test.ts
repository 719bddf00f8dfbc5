import { expect, it, vi } from "vitest";
import { FleetError } from "../errors.ts";
import { repeatLost } from "./repeat-lost.ts";

const away = (outcome?: "unknown") =>
  new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true, ...(outcome && { outcome }) });

it("makes a call again whose answer was lost, as often as it takes", async () => {
  const call = vi
    .fn()
    .mockRejectedValueOnce(away("unknown"))
    .mockRejectedValueOnce(away("unknown"))
    .mockResolvedValue(7);
  expect(await repeatLost(call)).toBe(7);
  expect(call).toHaveBeenCalledTimes(3);
});

it.each([
  ["was not sent", away()],
  ["was refused", new FleetError("FLEET_LEASE_LOST", "lost")],
])("fails with what fails otherwise: one that %s", async (_, error) => {
  const call = vi.fn().mockRejectedValue(error);
  await expect(repeatLost(call)).rejects.toBe(error);
  expect(call).toHaveBeenCalledTimes(1);
});

it("does not repeat what was out for long", async () => {
  vi.spyOn(performance, "now").mockReturnValueOnce(0).mockReturnValue(2001);
  const call = vi.fn().mockRejectedValue(away("unknown"));
  await expect(repeatLost(call)).rejects.toMatchObject({ outcome: "unknown" });
  expect(call).toHaveBeenCalledTimes(1);
  vi.restoreAllMocks();
});
