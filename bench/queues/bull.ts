// BullMQ as its guide sets it up, with the retention that Fleet's queues have by default.
import { type JobsOptions, Queue } from "bullmq";
import { Ping, samplePing } from "../payload.ts";

export const JOB_OPTIONS: JobsOptions = { removeOnComplete: { age: 3600, count: 10_000 }, attempts: 5 };

export function bullQueue(redisUrl: string, name: string): Queue<Ping, unknown> {
  return new Queue(name, { connection: { url: redisUrl }, defaultJobOptions: JOB_OPTIONS });
}

/** What a caller does who checks what it hands over, as Fleet does. */
export function checkedPing(index: number): Ping {
  return Ping.parse(samplePing(index));
}
