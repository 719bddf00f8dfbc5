import { expect, test } from "vitest";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import { Setbacks } from "./setbacks.ts";

test("each failure is said once for what it is, however often it is tried, and again after it was over", async () => {
  const said: string[] = [];
  const note = (level: string) => (message: string, fields?: object) =>
    void said.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const setbacks = new Setbacks({ ...SILENT, warn: note("warn"), error: note("error") });
  const full = () => Promise.reject(new FleetError("FLEET_STORE_FAILED", "full", { retryable: true }));
  const wrong = () => Promise.reject(new TypeError("wrong"));
  expect(setbacks.over("a")).toBe(false);
  for (let tries = 0; tries < 3; tries++) await setbacks.spare("a", full);
  await setbacks.spare("b", full);
  await setbacks.spare("a", wrong);
  expect(setbacks.over("a")).toBe(true);
  expect(setbacks.over("a")).toBe(false);
  await setbacks.spare("b", () => Promise.resolve());
  await setbacks.spare("a", wrong);
  expect(said).toEqual([
    'warn a; trying again {"error":"full"}',
    'warn b; trying again {"error":"full"}',
    'error a; trying again {"error":"wrong"}',
    'error a; trying again {"error":"wrong"}',
  ]);
});
