import { expect, test } from "vitest";
import { escapeControls, isSecretKey, redactText, redactUrl } from "./redact.ts";

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

test("knows names of secrets in their usual spellings", () => {
  for (const key of ["password", "Authorization", "apiKey", "accessToken", "api_key", "x-auth-token", "pwd"])
    expect(isSecretKey(key)).toBe(true);
  for (const key of ["tokens", "keyboard", "slot", "author", "passed"]) expect(isSecretKey(key)).toBe(false);
});

test("makes control characters visible", () => {
  expect(escapeControls("a\nb\u001b[31mc\u0085d")).toBe("a\\nb\\u001b[31mc\\u0085d");
});
