import { eachAlone } from "../control/damaged.ts";
import { messageOf } from "../errors.ts";
import { escapeControls } from "../internal/redact.ts";

/** What `look` finds of each that is there. One that cannot be read is said so of, and keeps none of the others from being shown. */
export async function readEach<T>(
  kind: string,
  names: readonly string[],
  look: (name: string) => Promise<T | undefined>,
): Promise<{ name: string; found: T }[]> {
  const all = await eachAlone(names, look, (name, error) =>
    process.stderr.write(escapeControls(`${kind} "${name}" cannot be read: ${messageOf(error)}`) + "\n"),
  );
  return names.flatMap((name, at) => {
    const found = all[at];
    return found === undefined ? [] : [{ name, found }];
  });
}
