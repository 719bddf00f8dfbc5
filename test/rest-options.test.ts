// Short (`npm test`): options of createMaster and createClient: each refusal names the option and what to give instead.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { createClient } from "../src/client/client.ts";
import { createMaster } from "../src/master/create-master.ts";
import { TOKEN } from "./support/rest.ts";

const SECRET = "S3CRET";

describe("createClient", () => {
  const good = { url: "http://127.0.0.1:1", token: TOKEN };
  it.each([
    [{ url: undefined }, /url is missing, for example \{ url: "http:\/\/127/],
    [{ url: "redis://h" }, /url must be the address of a master .* as in http:/],
    [{ url: "127.0.0.1:4400" }, /url must be the address of a master/],
    [{ url: 4400 }, /url must be the address of a master .* got 4400/],
    [{ url: `http://u:${SECRET}@h:4400` }, /url must be .* without a user or password/],
    [{ token: undefined }, /token is missing; it is the master's FLEET_TOKEN/],
    [{ token: "" }, /token must be the master's token/],
    [{ token: `${SECRET} two words` }, /token must be the master's token, .* without blanks/],
    [{ fetch: "fetch" }, /fetch must be a function/],
    [{ tokens: "x" }, /unknown option "tokens"; did you mean "token"\?/],
  ])("refuses %j", (options, message) => {
    const given = { ...good, ...options } as unknown as typeof good;
    const failure = failureOf(() => createClient(given));
    expect(failure).toMatchObject({ code: "FLEET_OPTION_INVALID" });
    expect(failure.message).toMatch(message);
    expect(failure.message).toMatch(/^createClient: /);
    expect(failure.message).not.toContain(SECRET);
  });

  it("keeps the path of a proxy", async () => {
    const asked: string[] = [];
    const client = createClient({
      ...good,
      url: "https://proxy.example/fleet/",
      fetch: (request) => {
        asked.push(request.url);
        return Response.json({ items: [], next_cursor: null });
      },
    });
    await client.listWorkers({ query: { limit: 2 } });
    expect(asked).toEqual(["https://proxy.example/fleet/api/v1/workers?limit=2"]);
  });

  it("runs in browsers: it needs nothing of Node", async () => {
    const { metafile } = await build({
      entryPoints: [fileURLToPath(new URL("../src/client/entry.ts", import.meta.url))],
      bundle: true,
      platform: "browser",
      format: "esm",
      write: false,
      metafile: true,
      logOverride: { "empty-import-meta": "silent" },
    });
    const imports = Object.values(metafile.inputs).flatMap(({ imports: all }) => all.map(({ path }) => path));
    expect(imports.length).toBeGreaterThan(20);
    expect(imports.filter((path) => path.startsWith("node:"))).toEqual([]);
  });

  it("says what a call lacks, before anything is sent", async () => {
    const client = createClient(good);
    const call = client.getAutomation as (input?: object) => Promise<unknown>;
    for (const input of [undefined, {}, { name: "" }])
      await expect(call(input)).rejects.toThrow(/GET \/automations\/:name: name is missing/);
  });

  it("says where a master cannot be reached, and that what changes something may have happened", async () => {
    const client = createClient(good);
    await expect(client.listWorkers()).rejects.toMatchObject({
      code: "FLEET_STORE_UNAVAILABLE",
      retryable: true,
      message: expect.stringContaining("http://127.0.0.1:1") as string,
    });
    await expect(client.popOutput({ name: "x" })).rejects.toMatchObject({ outcome: "unknown" });
  });
});

describe("createMaster", () => {
  const good = { store: "sqlite::memory:", token: TOKEN, port: 0 };
  it.each([
    [{ store: undefined }, /store is missing, for example/],
    [{ store: 1 }, /store must be a text/],
    [{ token: undefined }, /token is missing; .* make it long and random/],
    [{ token: SECRET }, /token must be a token of 16 to 512 printable characters/],
    [{ token: `${SECRET} with blanks in it` }, /token must be a token of 16 to 512/],
    [{ token: 7 }, /token must be a text/],
    [{ host: "" }, /host must be a text/],
    [{ port: 65_536 }, /port must be at most 65535, got 65536/],
    [{ port: "4400" }, /port must be a whole number/],
    [
      { workerStore: `postgres://u:${SECRET}@h` },
      /workerStore must be a Redis address as other hosts see it/,
    ],
    [{ workerStore: "sqlite:x.db" }, /workerStore must be a Redis address/],
    [{ workerStore: 7 }, /workerStore must be a Redis address/],
    [{ leaseMs: 100 }, /leaseMs must be at least 500/],
    [{ sweepMs: 0 }, /sweepMs must be at least 100/],
    [{ log: {} }, /log must be an object with the functions/],
    [{ ports: 1 }, /unknown option "ports"; did you mean "port"\?/],
  ])("refuses %j", async (options, message) => {
    const given = { ...good, ...options } as unknown as typeof good;
    const failure = (await createMaster(given).catch((error: unknown) => error)) as Error;
    expect(failure).toMatchObject({ code: "FLEET_OPTION_INVALID" });
    expect(failure.message).toMatch(message);
    expect(failure.message).toMatch(/^createMaster: /);
    expect(failure.message).not.toContain(SECRET);
  });

  it("refuses a namespace that is none, and a place where it cannot listen", async () => {
    await expect(createMaster({ ...good, namespace: "A B" })).rejects.toMatchObject({
      code: "FLEET_NAME_INVALID",
    });
    const first = await createMaster(good);
    const port = Number(new URL(first.url).port);
    await expect(createMaster({ ...good, port })).rejects.toThrow(
      new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: something listens there already`),
    );
    await first.close();
    // Again, and nothing is left behind that holds the port.
    await first.close();
    const second = await createMaster({ ...good, port });
    await second.close();
  });

  it("ends with its block", async () => {
    let url = "";
    {
      await using master = await createMaster(good);
      url = master.url;
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    }
    await expect(fetch(`${url}/healthz`)).rejects.toThrow("fetch failed");
  });
});

function failureOf(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not fail");
}
