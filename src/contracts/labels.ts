import { refuse } from "./options.ts";

/** What a label may be named. */
export const LABEL_NAME = /^[A-Za-z0-9][\w./-]{0,127}$/;
const MAX_VALUE = 256;

/** Labels as they are compared: texts, numbers and booleans as text. Throws `FLEET_OPTION_INVALID`. */
export function checkLabels(value: unknown, where: string): Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refuse(where, 'an object, for example { region: "eu", browser: true }', value);
  const entries = Object.entries(value as Record<string, unknown>).filter(([, given]) => given !== undefined);
  return Object.fromEntries(
    entries.map(([name, given]) => {
      if (!LABEL_NAME.test(name))
        return refuse(`${where}: name of a label`, "1 to 128 letters, digits, '.', '_', '/' or '-'", name);
      const plain = typeof given === "string" || typeof given === "boolean" || Number.isFinite(given);
      const text = plain ? String(given) : "";
      return plain && text.length <= MAX_VALUE
        ? [name, text]
        : refuse(
            `${where}.${name}`,
            `a text of at most ${MAX_VALUE} characters, a number or a boolean`,
            given,
          );
    }),
  );
}
