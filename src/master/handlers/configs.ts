import type { AUTOMATION_ROUTES } from "../../client/routes/automations.ts";
import type { Json } from "../../client/shapes.ts";
import {
  type ConfigChanged,
  configHistory,
  type ConfigWish,
  patchConfig,
  promoteCanary,
  rollbackConfig,
  stopCanary,
} from "../../control/config.ts";
import { FleetError } from "../../errors.ts";
import type { Asked, Handlers } from "../handler.ts";
import { RequestProblem } from "../http/request-problem.ts";
import { badCursor } from "../words.ts";

type Names = "patchConfig" | "configHistory" | "rollbackConfig" | "promoteCanary" | "stopCanary";

export const CONFIG_HANDLERS: Handlers<Names & keyof typeof AUTOMATION_ROUTES> = {
  patchConfig: async (asked, { store }) => {
    const { name } = asked.params;
    const { replace, labels, canary, note } = asked.query;
    const edit = {
      ...(replace ? { replace: asked.body } : { patch: asked.body }),
      ...(labels === undefined ? {} : { labels: labelsOf(labels) }),
      ...(canary === undefined ? {} : { canary: { share: canary } }),
    };
    return shown(name, await patchConfig(store, name, edit, wishOf(asked, note)));
  },

  configHistory: async ({ params: { name }, query: { limit, cursor } }, { store }) => {
    if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor))
      throw badCursor(new FleetError("FLEET_OPTION_INVALID", "cursor"));
    const before = cursor === undefined ? undefined : Number(cursor);
    // One more than asked for tells whether there are more.
    const versions = await configHistory(store, name, {
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
    });
    const page = versions.slice(0, limit);
    return {
      items: page.map(({ generation, config, overrides, canary, at, by, note }) => ({
        generation,
        config: config as Json,
        overrides: overrides.map((one) => ({ labels: { ...one.labels }, config: one.config as Json })),
        canary: canary && { ...canary, config: canary.config as Json },
        at,
        by,
        note,
      })),
      next_cursor: versions.length > limit ? String(page.at(-1)?.generation) : null,
    };
  },

  rollbackConfig: async (asked, { store }) => {
    const { name } = asked.params;
    return shown(name, await rollbackConfig(store, name, asked.body.generation, wishOf(asked)));
  },
  promoteCanary: async (asked, { store }) => {
    const { name } = asked.params;
    return shown(name, await promoteCanary(store, name, wishOf(asked)));
  },
  stopCanary: async (asked, { store }) => {
    const { name } = asked.params;
    return shown(name, await stopCanary(store, name, wishOf(asked)));
  },
};

function wishOf({ by, ifMatch }: Pick<Asked<never>, "by" | "ifMatch">, note?: string): ConfigWish {
  return {
    by: `API (${by.name})`,
    ...(note === undefined ? {} : { note }),
    ...(ifMatch === undefined ? {} : { ifMatch: generationOf(ifMatch) }),
  };
}

/** `"7"`, `W/"7"` or `7`. */
function generationOf(ifMatch: string): number {
  const digits = /^(?:W\/)?"?(\d{1,15})"?$/.exec(ifMatch.trim())?.[1];
  if (digits !== undefined) return Number(digits);
  throw new RequestProblem(400, "FLEET_REQUEST_INVALID", 'If-Match must be a generation, as in "7"');
}

function labelsOf(text: string): Record<string, string> {
  const labels = new Map<string, string>();
  for (const pair of text.split(",")) {
    const [, name, value] = /^\s*([A-Za-z0-9][\w./-]*)=(.*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined) throw badLabels("must be pairs, as in region=eu,gpu=true");
    // Which of the two is meant nobody can tell.
    if (labels.has(name)) throw badLabels(`have ${name} twice`);
    labels.set(name, value);
  }
  return Object.fromEntries(labels);
}

function badLabels(message: string): RequestProblem {
  return new RequestProblem(400, "FLEET_REQUEST_INVALID", `labels ${message}`, {
    issues: [{ pointer: "/labels", message }],
  });
}

function shown(name: string, { changed, desired, diff, checked, warnings }: ConfigChanged) {
  return {
    automation: name,
    changed,
    generation: desired.generation,
    config: desired.config as Json,
    diff: diff.map((one) => ({ ...one })) as { pointer: string; before?: Json; after?: Json }[],
    checked,
    warnings,
  };
}
