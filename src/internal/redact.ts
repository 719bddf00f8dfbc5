/** What stands in place of a secret. */
export const HIDDEN = "***";

const SECRET_KEY =
  /(^|[_\-.])(pass(word|wd)?|pwd|secret|token|authorization|cookie|credentials?|api[_-]?key)$/i;
/** What no address in a text goes beyond. */
const RUN = /[^\s"'`<>]+/g;
const SCHEME_CHAR = /[a-z0-9+.-]/i;
const LETTER = /[a-z]/i;
/** A Redis address with too few or too many slashes is still one. */
const REDIS = /\brediss?(?:\+[a-z]+)?:/i;
const SECRET_PARAMETER = /([?&](?:(?:sentinel_)?pass(?:word)?|secret|token|api_?key)=)[^&\s"'`<>]+/gi;

/**
 * Hides user name and password of every address in `text`. Also right for broken addresses (a `/`, `#` or `@` in the
 * password): everything up to the last `@` of an unbroken run of characters goes.
 *
 * It is run on whatever users' code says, so its time must grow with the text's length and no faster: no expression here may look for
 * an end that may not come from each of many beginnings.
 */
export function redactText(text: string): string {
  const hidden = text.includes("@") ? text.replace(RUN, (run) => hideInRedis(hideInUrl(run))) : text;
  return hidden.replace(SECRET_PARAMETER, `$1${HIDDEN}`);
}

/** As {@link redactText}, of a text's first `max` characters, and "…" where it has more. An address that goes on after them is hidden. */
export function redactStart(text: string, max: number): string {
  if (text.length <= max) return redactText(text);
  // The "@" that is left off may have followed a password: as if it stood right here.
  const hidden = redactText(`${text.slice(0, max)}@`);
  return `${hidden.endsWith("@") ? hidden.slice(0, -1) : hidden}…`;
}

/**
 * As {@link redactText}, of a text's last `max` characters. `cut`: it is the end of a longer one itself, however short it is by now.
 */
export function redactEnd(text: string, max: number, cut: boolean): string {
  if (!cut && text.length <= max) return redactText(text);
  // What is left off may have been the beginning of an address.
  const scheme = "x://";
  return redactText(scheme + text)
    .slice(scheme.length)
    .slice(-max);
}

function hideInUrl(run: string): string {
  const at = run.lastIndexOf("@");
  let slashes = run.indexOf("://");
  while (slashes >= 0 && slashes + 3 <= at && !isScheme(run, slashes))
    slashes = run.indexOf("://", slashes + 3);
  if (slashes < 0 || slashes + 3 > at) return run;
  return run.slice(0, slashes + 3) + HIDDEN + run.slice(at);
}

/** Whether a scheme ends before `end`: a word's first letter, and then letters, digits, "+", "." and "-" only. */
function isScheme(run: string, end: number): boolean {
  for (let i = end - 1; i >= 0 && SCHEME_CHAR.test(run.charAt(i)); i -= 1)
    if (LETTER.test(run.charAt(i)) && !/\w/.test(run.charAt(i - 1))) return true;
  return false;
}

function hideInRedis(run: string): string {
  const at = run.lastIndexOf("@");
  const scheme = at < 0 ? null : REDIS.exec(run);
  if (scheme === null || scheme.index + scheme[0].length > at) return run;
  return `${run.slice(0, scheme.index)}${scheme[0]}//${HIDDEN}${run.slice(at)}`;
}

/**
 * As {@link redactText}, for a text that is one address as a whole: here the password may even hold blanks, and the scheme may
 * be missing.
 */
export function redactUrl(url: string): string {
  // First, as such a password can hold an "@" too.
  const rest = url.replace(SECRET_PARAMETER, `$1${HIDDEN}`);
  const at = rest.lastIndexOf("@");
  if (at < 0) return redactText(rest);
  const scheme = /^\s*[a-z][a-z0-9+.-]*:/i.exec(rest)?.[0];
  return redactText(`${scheme === undefined ? "" : `${scheme}//`}${HIDDEN}${rest.slice(at)}`);
}

/** True for names of fields and options whose value nobody should read in a log. */
export function isSecretKey(key: string): boolean {
  // `accessToken` reads like `access_token`.
  return SECRET_KEY.test(key.replace(/([a-z0-9])([A-Z])/g, "$1_$2"));
}

/** Makes control characters visible, so that a text can neither move the cursor nor forge a second line. */
export function escapeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => {
    const known: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
    return known[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
