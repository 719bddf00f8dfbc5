// What is checked, from the environment: `run.mjs` sets it.
import { z } from "zod";

const Env = z.object({
  /** Names this check: another one reads every page anew. */
  SITE_CHECK_ID: z.string().min(1).default("check"),
  SITE_CHECK_START: z.url(),
  /** A folder to be served at the start's port; without it the start is somebody's site. */
  SITE_CHECK_FOLDER: z.string().optional(),
  /** Where findings and report go. */
  SITE_CHECK_OUT: z.string().default("site-check-report"),
  SITE_CHECK_SLOTS: z.coerce.number().int().min(1).max(100).default(8),
  SITE_CHECK_DEPTH: z.coerce.number().int().min(0).default(100),
  /** Whether addresses outside of the site are asked for as well. */
  SITE_CHECK_EXTERNAL: z.enum(["yes", "no"]).default("yes"),
  /** Seconds between two pages of one slot. */
  SITE_CHECK_PAUSE: z.coerce.number().min(0).default(0),
});

export function readSettings(env: NodeJS.ProcessEnv) {
  const found = Env.safeParse(env);
  if (!found.success)
    throw new Error(
      `site-check: ${found.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ")}`,
    );
  const { data } = found;
  return {
    check: data.SITE_CHECK_ID,
    start: data.SITE_CHECK_START,
    folder: data.SITE_CHECK_FOLDER,
    out: data.SITE_CHECK_OUT,
    slots: data.SITE_CHECK_SLOTS,
    maxDepth: data.SITE_CHECK_DEPTH,
    external: data.SITE_CHECK_EXTERNAL === "yes",
    pauseSeconds: data.SITE_CHECK_PAUSE,
  };
}
