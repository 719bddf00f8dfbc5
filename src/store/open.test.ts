import { redactText } from "../internal/redact.ts";
import { expect, test } from "vitest";
import { openStore, storeKind } from "./open.ts";

test("the scheme names the back end", () => {
  expect(storeKind("sqlite::memory:")).toBe("sqlite");
  const scheme = ["redis", "rediss", "redis+cluster", "redis+sentinel", "rediss+sentinel"];
  for (const url of ["http://h:4400", "https://h/path", "fleet+unix:/tmp/s"])
    expect(storeKind(url)).toBe("remote");
  for (const url of scheme.map((one) => `${one}://h:1/m`)) expect(storeKind(url)).toBe("redis");
});

test.each([
  "",
  "localhost:6379",
  "http://:S3CRET-x@h",
  "https://h:1/?token=S3CRET-x",
  "fleet.db",
  "redis",
  undefined,
])("%s is refused, with the accepted forms and without its password", async (url) => {
  const error = await openStore(url as string).catch((error: unknown) => error);
  expect(error).toMatchObject({ code: "FLEET_STORE_URL_INVALID" });
  expect(String(error)).toContain("sqlite:path/to/fleet.db");
  // Whoever prints it hides what looks like a password.
  expect(redactText(String(error))).toBe(String(error));
  expect(String(error)).not.toContain("S3CRET-x");
});

test.each([
  [{ namespace: "A B" }, "FLEET_NAME_INVALID"],
  [{ deadlineSeconds: 0 }, "FLEET_OPTION_INVALID"],
  [{ deadlineSeconds: 61 }, "FLEET_OPTION_INVALID"],
  [{ nameSpace: "a" }, "FLEET_OPTION_INVALID"],
  [{ log: "yes" }, "FLEET_OPTION_INVALID"],
])("options %j are refused", async (options, code) => {
  await expect(openStore("sqlite::memory:", options as never)).rejects.toMatchObject({ code });
});
