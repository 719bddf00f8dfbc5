import { resolve } from "node:path";
import { expect, test } from "vitest";
import { isFleetError } from "../../errors.ts";
import { sqlitePath } from "./location.ts";

test.each([
  ["sqlite:fleet.db", resolve("fleet.db")],
  ["sqlite:./a/b.db", resolve("a/b.db")],
  ["sqlite:/var/lib/fleet.db", "/var/lib/fleet.db"],
  ["sqlite:///var/lib/fleet.db", "/var/lib/fleet.db"],
  ["sqlite:file:x.db", resolve("file:x.db")],
  ["sqlite::memory:", undefined],
])("%s", (url, path) => {
  expect(sqlitePath(url)).toBe(path);
});

test.each(["sqlite:", "sqlite://host/x.db", "sqlite::mem:", "sqlite:a\0b", "sqlite:data/", "redis://x"])(
  "%j is refused",
  (url) => {
    expect(() => sqlitePath(url)).toThrow(
      expect.toSatisfy((error) => isFleetError(error, "FLEET_STORE_URL_INVALID")),
    );
  },
);
