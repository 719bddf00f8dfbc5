// What the automations of this project share: three queues, nothing else. None of them knows another's code.
import { defineQueue } from "fleet-framework/contracts";
import { z } from "zod";

/** One page of the site to be read. */
export const PageTask = z.object({
  url: z.url(),
  /** Clicks away from the start. */
  depth: z.number().int().min(0),
});

/** One address that is not to be read, only asked for: on other sites, or no page. */
export const LinkTask = z.object({ url: z.url() });

/** Where a page points to. */
export const Link = z.object({ url: z.string(), text: z.string() });
export type Link = z.infer<typeof Link>;

/** How an address answered. `status` 0: it did not; `error` says why. */
const Answer = z.object({
  url: z.string(),
  status: z.number().int(),
  ms: z.number(),
  /** Where it led to, when that was somewhere else. */
  redirectedTo: z.string().nullable(),
  error: z.string().nullable(),
});

export const Finding = z.discriminatedUnion("kind", [
  Answer.extend({
    kind: z.literal("page"),
    depth: z.number().int(),
    title: z.string(),
    bytes: z.number().int(),
    links: z.array(Link),
    /** `robots.txt` asks not to read it. */
    disallowed: z.boolean(),
  }),
  Answer.extend({ kind: z.literal("link") }),
]);
export type Finding = z.infer<typeof Finding>;
export type PageFinding = Extract<Finding, { kind: "page" }>;
export type LinkFinding = Extract<Finding, { kind: "link" }>;

const WEEK = 7 * 86_400;

/** Reads pages. All pages of one host share its `key`, and so how many are read at once. */
export const CRAWLER = defineQueue("crawler", {
  payload: PageTask,
  maxAttempts: 3,
  timeoutSeconds: 60,
  keyConcurrency: 8,
  keepSeconds: WEEK,
});

/** Asks for addresses. Gentle with other people's hosts: two at once. */
export const LINK_CHECKER = defineQueue("link-checker", {
  payload: LinkTask,
  maxAttempts: 2,
  timeoutSeconds: 60,
  keyConcurrency: 2,
  keepSeconds: WEEK,
});

/** Takes in what was found: at least once, so no finding is lost when a process is. */
export const REPORT = defineQueue("report", { payload: Finding, maxPayloadBytes: 4 * 1024 * 1024 });
