import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { escapeControls, isSecretKey, redactEnd, redactStart, redactText, redactUrl } from "./redact.ts";

test.each([
  ["redis://:S3CRET-x@127.0.0.1:6379/1", "redis://***@127.0.0.1:6379/1"],
  ["rediss://user:S3CRET-x@host", "rediss://***@host"],
  ["redis://S3CRET-x@host", "redis://***@host"],
  ["redis://:S3CRET-x/with@odd#signs?@host:1", "redis://***@host:1"],
  ["redis://:S3CRET-x with blanks@host", "redis://***@host"],
  ["redis:/:S3CRET-x@host", "redis://***@host"],
  ["redis::S3CRET-x@host", "redis://***@host"],
  ["redis+cluster://u:S3CRET-x@a:1,u:S3CRET-x@b:2", "redis+cluster://***@b:2"],
  ["redis://host:1?password=S3CRET-x", "redis://host:1?password=***"],
  [
    "redis+sentinel://u:S3CRET-x@a:1,b:2/main?sentinel_password=S3CRET-x@y&db=1",
    "redis+sentinel://***@a:1,b:2/main?sentinel_password=***&db=1",
  ],
  ["redis://host:6379", "redis://host:6379"],
  ["sqlite:.fleet/fleet.db", "sqlite:.fleet/fleet.db"],
  ["not an address", "not an address"],
])("%s is shown as %s", (url, shown) => {
  expect(redactUrl(url)).toBe(shown);
});

test("hides every address in a text and leaves the rest", () => {
  const text = 'no answer from redis://:S3CRET-x@a:1 (was "rediss://u:S3CRET-x@b"), ask admin@example.com';
  expect(redactText(text)).toBe(
    'no answer from redis://***@a:1 (was "rediss://***@b"), ask admin@example.com',
  );
});

describe("in long texts", () => {
  /** What is hidden, written as it can be read at once; its time grows with the square of a text's length, and with its cube. */
  const asDefined = (text: string) =>
    text
      .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s"'`<>]*@/gi, "$1***@")
      .replace(/\b(rediss?(?:\+[a-z]+)?:)\/*[^\s"'`<>]*@/gi, "$1//***@")
      .replace(/([?&](?:(?:sentinel_)?pass(?:word)?|secret|token|api_?key)=)[^&\s"'`<>]+/gi, "$1***");
  const urlAsDefined = (url: string) => {
    const rest = url.replace(
      /([?&](?:(?:sentinel_)?pass(?:word)?|secret|token|api_?key)=)[^&\s"'`<>]+/gi,
      "$1***",
    );
    const whole = /^(\s*[a-z][a-z0-9+.-]*:)?\/*.*@/is.exec(rest);
    if (whole === null) return asDefined(rest);
    return asDefined(`${whole[1] === undefined ? "" : `${whole[1]}//`}***@${rest.slice(whole[0].length)}`);
  };
  const pieces =
    "redis: rediss REDIS+x: redis+ :// / : @ a 1 . - + _ ä K ſ ? & token= ?pass= x \" ' < \u2028".split(" ");
  const texts = fc
    .array(fc.constantFrom(...pieces, " ", "\n"), { maxLength: 14 })
    .map((parts) => parts.join(""));

  test("hides what it is defined to hide", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(redactText(text)).toBe(asDefined(text));
        expect(redactUrl(text)).toBe(urlAsDefined(text));
      }),
      { numRuns: 5000 },
    );
  });

  // Each of them has millions of places where an address may begin, or one where it may end anywhere.
  test.each([
    ["addresses that end nowhere", "https://x,"],
    ["one long scheme", "a."],
    ["Redis addresses that end nowhere", "redis:"],
    ["slashes", "/"],
    ["beginnings of schemes", "redis+a"],
    ["what is no scheme", "1://"],
    ["parameters", "?token="],
    ["words", "some words "],
  ])("of 5 MB are redacted in one go: %s", (_, piece) => {
    const long = piece.repeat(Math.ceil(5_000_000 / piece.length));
    for (const text of [long, `redis:${long}`, `${long} u@h`, `@${long}`]) {
      expect(redactText(text).length).toBeLessThanOrEqual(text.length);
      expect(redactUrl(text).length).toBeLessThanOrEqual(text.length + 5);
    }
    expect(redactText(`https://u:S3CRET-x@h ${long} redis://:S3CRET-x@h`)).not.toContain("S3CRET-x");
  });

  test("a cut shows nothing of an address that it goes through", () => {
    const text = "no answer from postgres://user:S3CRET-x@host, nor from redis://:S3CRET-x@other in time";
    for (let max = 1; max <= text.length + 1; max += 1) {
      for (const part of [
        redactStart(text, max),
        redactEnd(text, max, false),
        redactEnd(text.slice(-max), max, true),
        redactEnd(text.slice(-max), max + 100, true),
      ]) {
        expect(part).not.toContain("S3C");
        expect(part).not.toContain("T-x");
        expect(part.length).toBeLessThanOrEqual(max + 6);
      }
    }
    expect(redactStart(text, 40)).toBe("no answer from postgres://***…");
    expect(redactStart("some words", 6)).toBe("some w…");
    expect(redactStart("admin@example.com", 7)).toBe("admin@e…");
    expect(redactEnd("x://y some words", 5, false)).toBe("words");
  });
});

test("knows names of secrets in their usual spellings", () => {
  for (const key of ["password", "Authorization", "apiKey", "accessToken", "api_key", "x-auth-token", "pwd"])
    expect(isSecretKey(key)).toBe(true);
  for (const key of ["tokens", "keyboard", "slot", "author", "passed"]) expect(isSecretKey(key)).toBe(false);
});

test("makes control characters visible", () => {
  expect(escapeControls("a\nb\u001b[31mc\u0085d")).toBe("a\\nb\\u001b[31mc\\u0085d");
});
