import { hostname, userInfo } from "node:os";

/** Who gave a command, for people who ask later: `command line (anna@host)`. */
export function whoAmI(): string {
  return `command line (${userAtHost()})`;
}

function userAtHost(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return hostname(); // A user id without a name, as in some containers.
  }
}
