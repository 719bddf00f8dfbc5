// The master's API on a store, without sockets: requests go straight to the app.
import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { isAutomation } from "../../src/automation/definition.ts";
import { manifestOf } from "../../src/automation/manifest.ts";
import { type Client, createClient } from "../../src/client/client.ts";
import { API_ROOT } from "../../src/client/routes.ts";
import { SILENT } from "../../src/internal/log.ts";
import { HANDLERS } from "../../src/master/handlers.ts";
import { buildApp } from "../../src/master/http/app.ts";
import { Authority } from "../../src/master/http/authorise.ts";
import { openServices } from "../../src/master/services.ts";
import type { Store } from "../../src/store/store.ts";
import { openPlace, type Place } from "./places.ts";
import { temporaryFolder } from "./stores.ts";

export const TOKEN = "a-token-for-tests-only";

export interface Answer {
  status: number;
  // What a test expects is in the test.
  json: Record<string, unknown>;
  text: string;
  headers: Headers;
}

export interface Rest {
  /** Ends long polls and streams, as the end of a master does. */
  stop(): Promise<void>;
  request(method: string, path: string, init?: RequestInit): Promise<Response>;
  /** With a body as JSON; of an answer without a body `json` is empty. */
  call(
    method: string,
    path: string,
    body?: unknown,
    how?: { headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Answer>;
  client: Client;
}

export function restOn(store: Store): Rest {
  const stopping = new AbortController();
  const { services, close } = openServices({ store, log: SILENT, stopping: stopping.signal });
  const app = buildApp({ services, handlers: HANDLERS, authority: new Authority(TOKEN) });
  const request: Rest["request"] = async (method, path, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${TOKEN}`);
    return app.request(API_ROOT + path, { ...init, method, headers });
  };
  let over: Promise<void> | undefined;
  const stop = () =>
    (over ??= (async () => {
      stopping.abort();
      await close();
    })());
  onTestFinished(stop);
  return {
    stop,
    request,
    call: async (method, path, body, { headers = {}, signal } = {}) => {
      const response = await request(method, path, {
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await response.text();
      return {
        status: response.status,
        text,
        json: (text === "" ? {} : JSON.parse(text)) as Answer["json"],
        headers: response.headers,
      };
    },
    client: createClient({
      url: "http://master.test",
      token: TOKEN,
      fetch: (given) => app.request(given),
    }),
  };
}

/** A store of its own at that place, which another process could share. */
export async function storeAt(
  place: Place,
): Promise<{ store: Store; url: string; namespace: string; another: () => Promise<Store> }> {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const { url, namespace } = place.at(folder.path);
  const another = async () => {
    const store = await openPlace({ url, namespace });
    onTestFinished(() => store.close());
    return store;
  };
  return { store: await another(), url, namespace, another };
}

/** What a worker that runs these automations would have published. It lives, and holds no slot. Answers how to let it leave. */
export async function publish(store: Store, definitions: readonly unknown[]): Promise<() => Promise<void>> {
  const automations = definitions.map((one) => {
    if (!isAutomation(one)) throw new Error("no automation");
    return one;
  });
  const worker = {
    id: `publisher-${randomUUID().slice(0, 8)}`,
    incarnation: randomUUID(),
    host: "h",
    pid: 1,
    version: "0",
    startedAt: Date.now(),
    capacity: 1,
    labels: {},
    automations: automations.map(({ name }) => name),
    known: Object.fromEntries(automations.map(({ name }) => [name, { version: "v1", labels: {} }])),
    draining: false,
  };
  const manifests = automations.map((one) => manifestOf(one, "v1"));
  await store.registry.register({ worker, manifests, ttlMs: 600_000 });
  return () => store.registry.deregister({ workerId: worker.id, incarnation: worker.incarnation });
}
