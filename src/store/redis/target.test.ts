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

  it("takes sentinels, with the name of the master, a database and their own credentials", () => {
    expect(parseTarget("redis+sentinel://app:pw@a:1,b,[::1]:3/main")).toMatchObject({
      cluster: false,
      tls: false,
      sentinel: { master: "main" },
      addresses: [
        { host: "a", port: 1 },
        { host: "b", port: 26_379 },
        { host: "::1", port: 3 },
      ],
      username: "app",
      password: "pw",
      database: 0,
      shown: "redis+sentinel://a:1,b,[::1]:3/main",
    });
    for (const url of ["rediss+sentinel://a/my.main_1/2", "rediss+sentinel://a/my.main_1?db=2"]) {
      expect(parseTarget(url)).toMatchObject({
        tls: true,
        sentinel: { master: "my.main_1" },
        database: 2,
        shown: "rediss+sentinel://a/my.main_1/2",
      });
    }
    const target = parseTarget(
      "redis+sentinel://:a?b/c@d@h/main/1?sentinel_username=watch&sentinel_password=p%40ss",
    );
    expect(target).toMatchObject({
      sentinel: { master: "main", username: "watch", password: "p@ss" },
      password: "a?b/c@d",
      database: 1,
      shown: "redis+sentinel://h/main/1",
    });
    expect(target.scrub("a?b/c@d p%40ss p@ss")).toBe("*** *** ***");
  });

  it.each([
    [
      "redis+sentinel://a:1,b:2",
      /name of the master is missing, as in redis\+sentinel:\/\/host:26379\/master-name/,
    ],
    ["redis+sentinel://a:1/", /name of the master is missing/],
    ["redis+sentinel://a:1/?db=2", /name of the master is missing/],
    ["redis+sentinel://a:1/ma in", /letters, digits/],
    ["redis+sentinel://a:1/main/one", /database must be a number/],
    ["redis+sentinel://a:1/main/1?db=1", /database is given twice/],
    ["redis+sentinel://a:1/main?db=1&db=1", /db is given twice/],
    ["redis+sentinel://a:1/main/1/2", /nothing behind the database/],
    ["redis+sentinel://a:1/main?database=1", /can be db, sentinel_username, sentinel_password only/],
    ["redis+sentinel://a:1/main?db", /can be db, sentinel_username, sentinel_password only/],
    ["redis+sentinel://a:1/main?sentinel_password=S3CRET@x", /%40/],
    ["redis+sentinel://a:1/main?sentinel_password=S3CRET%ZZ", /%25/],
    ["redis+sentinel://a:1,b:x/main", /host and port/],
    ["redis://a:1,b:2", /only redis\+cluster:\/\/ and redis\+sentinel:\/\//],
  ])("%s is refused with what is wrong with it", (url, message) => {
    const parse = () => parseTarget(url);
    expect(parse).toThrow(expect.objectContaining({ code: "FLEET_STORE_URL_INVALID" }));
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(/S3CRET/);
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
    ["redis+sentinel://u:S3CRET@h:1", "FLEET_STORE_URL_INVALID"],
    ["redis+sentinel://u:S3CRET@h:1/main?sentinel_password=S3CRET@x", "FLEET_STORE_URL_INVALID"],
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
