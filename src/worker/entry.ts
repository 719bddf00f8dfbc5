// The entry "fleet-framework/worker": a worker in one's own process.
export { createWorker, type CreateWorkerOptions } from "./create-worker.ts";
export type { Worker } from "./worker.ts";
export type { WorkerTimings } from "./timings.ts";
