import type { WORKER_ROUTES } from "../../client/routes/workers.ts";
import { cordon, drain, type Drained, remove, uncordon } from "../../control/operations.ts";
import { readTopology } from "../../control/read-topology.ts";
import { statusReport } from "../../control/status-report.ts";
import { FleetError } from "../../errors.ts";
import { VERSION } from "../../protocol/version.ts";
import type { Handlers } from "../handler.ts";
import { notFound } from "../../control/not-found.ts";
import { pageBy } from "../pages.ts";

export const WORKER_HANDLERS: Handlers<keyof typeof WORKER_ROUTES> = {
  getFleet: async (_asked, { store }) => {
    const { leader, now } = await store.registry.view();
    const { fleetId, namespace, traits } = store;
    return { fleet_id: fleetId, namespace, version: VERSION, store: traits.kind, leader, now };
  },

  joinFleet: async (_asked, { store, workerStore }) => ({
    store: workerStore ?? null,
    namespace: store.namespace,
  }),

  getTopology: async (_asked, { store }) => {
    const graph = await readTopology(store);
    return {
      ...graph,
      nodes: graph.nodes.map((node) => ({ ...node })),
      edges: graph.edges.map((edge) => ({ ...edge })),
    };
  },

  listWorkers: async ({ query }, { store }) => {
    const { workers } = statusReport(await store.registry.view());
    const page = pageBy(workers, ({ id }) => id, query);
    return { ...page, items: page.items.map((line) => ({ ...line })) };
  },

  drainWorker: async ({ params: { id }, body, by }, { store }) => {
    const deadline = body.deadline_seconds === undefined ? {} : { deadlineSeconds: body.deadline_seconds };
    return steered(id, await drain(store.registry, id, { ...deadline, by: `API (${by.name})` }));
  },
  cordonWorker: async ({ params: { id }, by }, { store }) =>
    steered(id, await cordon(store.registry, id, `API (${by.name})`)),
  uncordonWorker: async ({ params: { id } }, { store }) => steered(id, await uncordon(store.registry, id)),

  removeWorker: async ({ params: { id } }, { store }) => {
    const removed = await remove(store.registry, id);
    if (removed.outcome === "unknown") throw notFound("worker", id, removed.ids);
    if (removed.outcome === "alive")
      throw new FleetError("FLEET_CONFLICT", `worker "${id}" is alive; drain it first, nothing was removed`);
    return undefined;
  },
};

function steered(id: string, asked: Drained): { worker: string; changed: boolean } {
  switch (asked.outcome) {
    case "unknown":
      throw notFound("worker", id, asked.ids);
    case "offline":
      throw new FleetError("FLEET_CONFLICT", `worker "${id}" is offline; there is nothing to drain`);
    default:
      return { worker: id, changed: asked.outcome !== "unchanged" };
  }
}
