import type { AUTOMATION_ROUTES } from "../../client/routes/automations.ts";
import { type Change, changeDesired, pause, recycle, resume, scale } from "../../control/desire.ts";
import { automationLine, statusReport, type AutomationLine } from "../../control/status-report.ts";
import type { Json } from "../../client/shapes.ts";
import type { Manifest } from "../../protocol/manifest.ts";
import { workerState } from "../../protocol/status.ts";
import type { FleetView } from "../../store/store.ts";
import type { Handlers } from "../handler.ts";
import { notFound } from "../../control/not-found.ts";
import { pageBy } from "../pages.ts";
import type { Services } from "../services.ts";

type Names = Exclude<
  keyof typeof AUTOMATION_ROUTES,
  "patchConfig" | "configHistory" | "rollbackConfig" | "promoteCanary" | "stopCanary"
>;

export const AUTOMATION_HANDLERS: Handlers<Names> = {
  listAutomations: async ({ query }, { store }) => {
    const [view, health, manifests] = await readAll(store);
    const lines = statusReport(view, health).automations;
    const page = pageBy(lines, ({ name }) => name, query);
    return { ...page, items: page.items.map((line) => summaryOf(line, view, manifests)) };
  },

  getAutomation: async ({ params: { name } }, { store }) => {
    const [view, health, manifests] = await readAll(store);
    const desired = Object.hasOwn(view.desired, name) ? view.desired[name] : undefined;
    const manifest = publishedOf(name, view, manifests)[0]?.manifest;
    if (desired === undefined && manifest === undefined) throw notFound("automation", name, namesOf(view));
    const line = automationLine(name, view, health);
    const { output = null, tasks = null } = manifest ?? {};
    const { canary = null } = desired ?? {};
    return {
      ...summaryOf(line, view, manifests),
      config: (desired?.config ?? null) as Json,
      config_schema: manifest?.configSchema ?? null,
      state_schema: manifest?.stateSchema ?? null,
      output:
        output === null
          ? null
          : {
              stream: output.stream,
              schema: output.schema,
              max_length: output.maxLength,
              ttl_seconds: output.ttlSeconds,
            },
      tasks:
        tasks === null
          ? null
          : {
              queue: tasks.queue,
              payload_schema: tasks.schema,
              result_schema: tasks.resultSchema,
            },
      uses: Object.entries(manifest?.uses ?? {}).flatMap(([direction, uses]) =>
        uses.map(({ kind, name: used }) => ({ direction, kind, name: used })),
      ),
      labels: { ...manifest?.labels },
      overrides: (desired?.overrides ?? []).map(({ labels, config }) => ({
        labels: { ...labels },
        config: config as Json,
      })),
      canary: canary && { ...canary, config: canary.config as Json },
      canary_stopped: line.canary_stopped && { ...line.canary_stopped },
      slot_list: line.slot_list.map((slot) => ({ ...slot })),
    };
  },

  setSlots: async ({ params: { name }, body, by }, services) => {
    const answer = await steer(services, name, (desired) => scale(desired, body.count, `API (${by.name})`));
    return { ...answer, count: answer.slots };
  },
  pauseAutomation: ({ params: { name } }, services) => steer(services, name, pause),
  resumeAutomation: ({ params: { name } }, services) => steer(services, name, resume),
  recycleAutomation: ({ params: { name }, body }, services) =>
    steer(services, name, (desired) => recycle(desired, body.slot_id)),
};

async function steer({ store }: Services, name: string, change: Change) {
  const result = await changeDesired(store.registry, name, change);
  if (result.outcome === "unknown") throw notFound("automation", name, result.names);
  const { generation, slots, paused } = result.desired;
  return { automation: name, changed: result.outcome === "changed", generation, slots, paused };
}

function readAll({ registry }: Services["store"]) {
  return Promise.all([registry.view(), registry.slotHealth(), registry.manifests()]);
}

type Manifests = Readonly<Record<string, readonly Manifest[]>>;

/** What workers have published under that name: live ones first, then those that started last. */
function publishedOf(name: string, view: FleetView, manifests: Manifests) {
  const live = (id: string) =>
    view.workers.some((one) => one.id === id && workerState(one, view.now) !== "offline");
  return view.workers
    .toSorted((a, b) => Number(live(b.id)) - Number(live(a.id)) || b.startedAt - a.startedAt)
    .flatMap(({ id }) => (manifests[id] ?? []).map((manifest) => ({ id, manifest })))
    .filter(({ manifest }) => manifest.name === name);
}

function summaryOf(line: AutomationLine, view: FleetView, manifests: Manifests) {
  return {
    name: line.name,
    kind: publishedOf(line.name, view, manifests)[0]?.manifest.kind ?? null,
    versions: line.versions,
    slots: line.slots,
    running: line.running,
    paused: line.paused,
    generation: line.generation,
  };
}

function namesOf(view: FleetView): string[] {
  return [...new Set([...Object.keys(view.desired), ...view.workers.flatMap((one) => one.automations)])];
}
