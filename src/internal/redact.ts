/** What stands in place of a secret. */
export const HIDDEN = "***";

const SECRET_KEY =
  /(^|[_\-.])(pass(word|wd)?|pwd|secret|token|authorization|cookie|credentials?|api[_-]?key)$/i;
const URL_IN_TEXT = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s"'`<>]*@/gi;
/** A Redis address with too few or too many slashes is still one. */
const REDIS_IN_TEXT = /\b(rediss?(?:\+[a-z]+)?:)\/*[^\s"'`<>]*@/gi;
const SECRET_PARAMETER = /([?&](?:(?:sentinel_)?pass(?:word)?|secret|token|api_?key)=)[^&\s"'`<>]+/gi;

/**
 * Hides user name and password of every address in `text`. Also right for broken addresses (a `/`, `#` or `@` in the
 * password): everything up to the last `@` of an unbroken run of characters goes.
 */
export function redactText(text: string): string {
  return text
    .replace(URL_IN_TEXT, `$1${HIDDEN}@`)
    .replace(REDIS_IN_TEXT, (_, scheme: string) => `${scheme}//${HIDDEN}@`)
    .replace(SECRET_PARAMETER, `$1${HIDDEN}`);
}

/**
 * As {@link redactText}, for a text that is one address as a whole: here the password may even hold blanks, and the scheme may
 * be missing.
 */
export function redactUrl(url: string): string {
  // First, as such a password can hold an "@" too.
  const rest = url.replace(SECRET_PARAMETER, `$1${HIDDEN}`);
  const whole = /^(\s*[a-z][a-z0-9+.-]*:)?\/*.*@/is.exec(rest);
  if (whole === null) return redactText(rest);
  const scheme = whole[1] === undefined ? "" : `${whole[1]}//`;
  return redactText(`${scheme}${HIDDEN}@${rest.slice(whole[0].length)}`);
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
