import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { isFleetError } from "../../errors.ts";
import { parseTarget } from "./target.ts";

describe("parseTarget", () => {
  it("reads user, password and database", () => {
    expect(parseTarget("redis://app:p%40ss%2Fword@db.example:6380/3")).toMatchObject({
      cluster: false,
      tls: false,
      addresses: [{ host: "db.example", port: 6380 }],
      username: "app",
      password: "p@ss/word",
      database: 3,
      shown: "redis://db.example:6380/3",
    });
  });

  it("takes the usual port, IPv6, TLS, and a password that is not escaped", () => {
    expect(parseTarget("redis://localhost")).toMatchObject({
      addresses: [{ host: "localhost", port: 6379 }],
    });
    expect(parseTarget("rediss://[::1]:7000")).toMatchObject({
      tls: true,
      addresses: [{ host: "::1", port: 7000 }],
    });
    expect(parseTarget("redis://:a/b@c:d@h:1")).toMatchObject({
      password: "a/b@c:d",
      addresses: [{ host: "h", port: 1 }],
    });
  });

  it("takes several seeds of a cluster", () => {
    expect(parseTarget("redis+cluster://:pw@a:1,b:2")).toMatchObject({
      cluster: true,
      addresses: [
        { host: "a", port: 1 },
        { host: "b", port: 2 },
      ],
      shown: "redis+cluster://a:1,b:2",
    });
  });

  it("removes the password from a text, as written and as meant", () => {
    const target = parseTarget("redis://app:s%21cret@h");
    expect(target.scrub("AUTH app s!cret failed for redis://app:s%21cret@h")).toBe(
      "AUTH app *** failed for redis://***@h",
    );
  });

  it.each([
    ["redis://u:S3CRET@h:notaport", "FLEET_STORE_URL_INVALID"],
    ["redis://u:S3CRET@h/notadatabase", "FLEET_STORE_URL_INVALID"],
    ["redis://u:S3CRET@h/0/1", "FLEET_STORE_URL_INVALID"],
    ["redis://u:S3CRET@h?x=1", "FLEET_STORE_URL_INVALID"],
    ["redis://u:S3CRET%ZZ@h", "FLEET_STORE_URL_INVALID"],
    ["redis://u:S3CRET@a:1,b:2", "FLEET_STORE_URL_INVALID"],
    ["redis+cluster://u:S3CRET@a:1/1", "FLEET_STORE_URL_INVALID"],
    ["http://u:S3CRET@h", "FLEET_STORE_URL_INVALID"],
    ["redis+sentinel://u:S3CRET@h:1/main", "FLEET_NOT_AVAILABLE"],
  ])("%s is refused without showing the password", (url, code) => {
    let error: unknown;
    try {
      parseTarget(url);
    } catch (thrown) {
      error = thrown;
    }
    expect(isFleetError(error, code as "FLEET_STORE_URL_INVALID")).toBe(true);
    expect(inspect(error)).not.toContain("S3CRET");
  });
});
