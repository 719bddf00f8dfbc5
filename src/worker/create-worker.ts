import { isAutomation, type Automation } from "../automation/definition.ts";
import { manifestOf } from "../automation/manifest.ts";
import { checkLabels } from "../contracts/labels.ts";
import { checkName, checkNamespace } from "../contracts/name.ts";
import { checkOptions, integer, logger, refuse, text, type OptionRules } from "../contracts/options.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { checkDeploy } from "../control/deploy-entries.ts";
import { FleetError, messageOf } from "../errors.ts";
import { nearest } from "../internal/suggest.ts";
import { SILENT, type Log } from "../internal/log.ts";
import { effectiveConfig } from "../protocol/config.ts";
import { withoutReferences } from "../protocol/config-reference.ts";
import type { DeployEntry } from "../protocol/program.ts";
import { openStore } from "../store/open.ts";
import {
  LEAVE_SECONDS,
  partitionOf,
  type PartitionOptions,
  partitionPolicy,
  partitionSeconds,
} from "./partition.ts";
import { workerTimings, type WorkerTimings } from "./timings.ts";
import { startWorker, type Worker } from "./worker.ts";

export interface CreateWorkerOptions extends PartitionOptions {
  /** Address of the store. */
  store: string;
  /** The master's token, where the store is a master's (`http://…`, `https://…`). */
  token?: string;
  namespace?: string;
  /** Definitions; they run inline, in this process. */
  automations: readonly { readonly kind: string; readonly name: string }[];
  /** Desired state to seed, by automation. */
  deploy?: Readonly<Record<string, DeployEntry>>;
  id?: string;
  /** Most slots at once; default 100. */
  capacity?: number;
  /** Of this worker; values are compared as text. */
  labels?: Readonly<Record<string, string | number | boolean>>;
  log?: Log;
  timings?: Partial<WorkerTimings>;
}

type Options = Omit<CreateWorkerOptions, "automations" | "labels"> & {
  automations: ReadonlyMap<string, Automation>;
  labels?: Record<string, string>;
};

const RULES: OptionRules<Options> = {
  store: text({ max: 4096 }),
  token: text({ max: 4096 }),
  namespace: checkNamespace,
  automations: checkAutomations,
  deploy: checkDeploy,
  id: (value) => checkName("worker id", value),
  capacity: integer({ min: 1, max: 100_000 }),
  labels: checkLabels,
  log: logger,
  partition: partitionPolicy,
  partitionSeconds,
  timings: (value, where) => {
    workerTimings(value as Partial<WorkerTimings>, where);
    return value as Partial<WorkerTimings>;
  },
};

/**
 * Runs a worker inside this process, for tests and for embedding: user code shares the process, so nothing isolates it. For
 * production use the command `fleet worker`, which gives each automation a process of its own. Asked to drain by command line or API, it
 * does so and closes its store; `asked` tells. So it does with `partition: "exit"` where the store is lost; `lost` tells, and what becomes of the
 * program is the program's affair.
 *
 * Throws `FLEET_OPTION_INVALID`, `FLEET_NAME_INVALID` or `FLEET_DEFINITION_INVALID` before it connects, and what `openFleet` does.
 */
export async function createWorker(options: CreateWorkerOptions): Promise<Worker & AsyncDisposable> {
  const given = checkOptions<Options>("createWorker", options, RULES);
  const { store: url, automations: inline, deploy = {}, log = SILENT } = given;
  if (url === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      'createWorker: store is missing, for example { store: "sqlite::memory:" }',
    );
  if (inline === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      "createWorker: automations is missing; list the definitions that it runs",
    );
  partitionOf(given, workerTimings(given.timings));
  await checkAgainst(inline, deploy);
  const store = await openStore(url, {
    token: given.token,
    namespace: given.namespace,
    log: (level, message, fields) => log[level](message, fields),
  });
  const automations = [...inline.values()].map((automation) => ({
    manifest: manifestOf(automation, "inline"),
    module: "",
    source: "(inline)",
    isolate: "automation" as const,
  }));
  try {
    const worker = await startWorker({
      ...given,
      store,
      storeUrl: url,
      program: { automations, deploy },
      log,
      inline,
    });
    let over: Promise<{ forced: boolean }> | undefined;
    const drainAndClose = async (how?: { deadlineSeconds?: number }) => {
      try {
        return await worker.drain(how);
      } finally {
        await store.close();
      }
    };
    const drain: Worker["drain"] = (how) => (over ??= drainAndClose(how));
    void worker.asked.then((request) => {
      log.info(`asked to drain by ${request.by}`);
      return drain(request).catch((error: unknown) =>
        log.warn("the drain that was asked for failed", { error: messageOf(error) }),
      );
    });
    void worker.lost.then(({ afterSeconds }) => {
      log.error(`the store has been away for ${afterSeconds} s: this worker leaves`);
      return drain({ deadlineSeconds: LEAVE_SECONDS }).catch((error: unknown) =>
        log.warn("leaving without the store failed", { error: messageOf(error) }),
      );
    });
    return {
      id: worker.id,
      pids: [],
      asked: worker.asked,
      lost: worker.lost,
      replace: (program) => worker.replace(program),
      drain,
      [Symbol.asyncDispose]: async () => void (await drain()),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function checkAutomations(value: unknown, where: string): ReadonlyMap<string, Automation> {
  const expected = "an array of definitions made by defineContinuous(…) or defineBatch(…)";
  if (!Array.isArray(value)) return refuse(where, expected, value);
  const inline = new Map<string, Automation>();
  for (const automation of value as unknown[]) {
    if (!isAutomation(automation)) return refuse(where, expected, automation);
    if (inline.has(automation.name))
      throw new FleetError(
        "FLEET_DEFINITION_INVALID",
        `createWorker: two automations are named "${automation.name}"`,
      );
    inline.set(automation.name, automation);
  }
  return inline;
}

/** What is to be deployed must be there, and each config must fit: nobody else would say so before its slots are blocked. */
async function checkAgainst(
  automations: ReadonlyMap<string, Automation>,
  deploy: Readonly<Record<string, DeployEntry>>,
): Promise<void> {
  for (const [name, entry] of Object.entries(deploy)) {
    const automation = automations.get(name);
    if (automation === undefined) {
      const near = nearest(name, automations.keys());
      const known = [...automations.keys()].join(", ") || "none";
      const hint = near === undefined ? `there are: ${known}` : `did you mean "${near}"?`;
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        `createWorker: deploy: there is no automation "${name}"; ${hint}`,
      );
    }
    const schema = automation.options.config;
    if (schema === undefined) continue;
    const { config = {}, overrides = [] } = entry;
    if (entry.config !== undefined) await checkFits(schema, config, `${name}: config`);
    for (const [at, { labels }] of overrides.entries()) {
      const effective = effectiveConfig({ slots: 0, config, overrides }, { labels });
      await checkFits(schema, effective, `${name}: config with overrides[${at}]`);
    }
  }
}

async function checkFits(schema: Schema, config: unknown, where: string): Promise<void> {
  const checked = await check(schema, config);
  const found = checked.ok ? [] : withoutReferences(checked.issues, config);
  if (found.length === 0) return;
  const { message, issues } = payloadError(`createWorker: deploy: ${where}`, found);
  throw new FleetError("FLEET_OPTION_INVALID", message, { issues });
}
