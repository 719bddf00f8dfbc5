import { expect, it } from "vitest";
import { environment } from "./process-runtime.ts";

const FROM = {
  PATH: "/bin",
  HOME: "/h",
  API_KEY: "k",
  OTHER: "o",
  FLEET_STORE: "redis://:p@h",
  FLEET_WORKER_STORE: "redis://:p@h",
  FLEET_TOKEN: "t",
  FLEET_MASTER: "m",
};

it("hides Fleet's own secrets from user code", () => {
  expect(environment({}, FROM)).toEqual({ PATH: "/bin", HOME: "/h", API_KEY: "k", OTHER: "o" });
});

it("shows only what is named, and what a program needs to run at all", () => {
  expect(environment({ env: ["API_KEY"] }, FROM)).toEqual({ PATH: "/bin", HOME: "/h", API_KEY: "k" });
  expect(environment({ env: ["FLEET_STORE"] }, FROM)).toEqual({ PATH: "/bin", HOME: "/h" });
});
