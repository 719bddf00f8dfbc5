// What options are called in bodies, in messages of checks that know them by their names in TypeScript.
import { FleetError, isFleetError } from "../errors.ts";
import { RequestProblem } from "./http/request-problem.ts";

const CAMEL =
  /\b(?:delaySeconds|runAt|dedupeKey|onDuplicate|dedupeSeconds|maxAttempts|timeoutSeconds|ttlSeconds|everySeconds|jitterSeconds|missedCap|holdSeconds|waitSeconds)\b/g;

/** An error of a check of options, with the names that the body has. Anything else as it is. */
export function knownOptions(error: unknown): unknown {
  if (!isFleetError(error, "FLEET_OPTION_INVALID")) return error;
  const message = error.message.replace(CAMEL, (name) =>
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
  return new FleetError("FLEET_OPTION_INVALID", message, {
    cause: error,
    issues: error.issues ?? [{ pointer: "", message }],
  });
}

/** What a store says of a cursor that it has not made. */
export function badCursor(error: unknown): unknown {
  if (!isFleetError(error, "FLEET_OPTION_INVALID")) return error;
  return new RequestProblem(400, "FLEET_REQUEST_INVALID", "cursor is no next_cursor of this list", {
    issues: [{ pointer: "/cursor", message: "is no next_cursor of this list" }],
  });
}
