import type { z } from "zod";
import { pointerPart } from "../../contracts/validate.ts";
import type { PayloadIssue } from "../../errors.ts";
import { RequestProblem } from "./request-problem.ts";

/** What `schema` makes of a body. Throws 422 with a pointer to each field that does not fit. */
export function checkedBody<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issues = issuesOf(checked.error.issues);
  throw new RequestProblem(422, "FLEET_REQUEST_INVALID", `the body does not fit: ${inWords(issues)}`, {
    issues,
  });
}

/** The same of a query, whose values are texts. Throws 400. */
export function checkedQuery<S extends z.ZodObject>(schema: S, query: URLSearchParams): z.output<S> {
  const names = [...query.keys()];
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new RequestProblem(400, "FLEET_REQUEST_INVALID", `the query has ${JSON.stringify(twice)} twice`, {
      issues: [{ pointer: pointerOf([twice]), message: "is given twice" }],
    });
  const checked = schema.strict().safeParse(Object.fromEntries(query));
  if (checked.success) return checked.data as z.output<S>;
  const issues = issuesOf(checked.error.issues);
  throw new RequestProblem(400, "FLEET_REQUEST_INVALID", `the query does not fit: ${inWords(issues)}`, {
    issues,
  });
}

/** Throws 400 for any parameter, where the route takes none; what its body would take is said so. */
export function refuseQuery(query: URLSearchParams, body: z.ZodType | undefined): void {
  const issues = [...new Set(query.keys())].map((name) => ({
    pointer: pointerOf([name]),
    message: hasField(body, name) ? "is a field of the body, not of the query" : "is not known",
  }));
  if (issues.length === 0) return;
  throw new RequestProblem(
    400,
    "FLEET_REQUEST_INVALID",
    `this route takes no query parameters: ${inWords(issues)}`,
    { issues },
  );
}

/** Whether an object of that schema may have a field of that name. */
export function hasField(schema: z.ZodType | undefined, name: string): boolean {
  const { shape } = (schema ?? {}) as { shape?: object };
  return shape !== undefined && Object.hasOwn(shape, name);
}

type Issue = z.core.$ZodIssue;

function issuesOf(issues: readonly Issue[], base: readonly PropertyKey[] = []): PayloadIssue[] {
  return issues.flatMap((issue) => {
    const path = [...base, ...issue.path];
    if (issue.code === "invalid_union" && issue.errors.length > 0)
      // The form that was meant is the one that is right for longest, and has least against it.
      return issuesOf(
        issue.errors.toSorted(
          (a, b) => depthOf(b) - depthOf(a) || a.length - b.length,
        )[0] as readonly Issue[],
        path,
      );
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ pointer: pointerOf([...path, key]), message: "is not known" }));
    return [{ pointer: pointerOf(path), message: issue.message }];
  });
}

function depthOf(issues: readonly Issue[]): number {
  return issues.reduce((depth, { path }) => Math.min(depth, path.length), Number.POSITIVE_INFINITY);
}

function pointerOf(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${pointerPart(String(part))}`).join("");
}

/** The first few issues, for people. */
export function inWords(issues: readonly PayloadIssue[]): string {
  const shown = issues
    .slice(0, 3)
    .map(({ pointer, message }) => `${pointer === "" ? "(all)" : pointer}: ${message}`);
  return (
    shown.join("; ") + (issues.length > shown.length ? `; and ${issues.length - shown.length} more` : "")
  );
}
