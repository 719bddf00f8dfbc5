import { FleetError } from "../../errors.ts";
import { STORE_PATH } from "../../protocol/remote.ts";

/** Where a served store is, and by what right it is used. */
export interface RemoteTarget {
  /** As it is shown in messages. */
  shown: string;
  /** Of the WebSocket. */
  url: string;
  /** A Unix socket of this machine, in place of a host and port. */
  socketPath: string | undefined;
  token: string;
}

const UNIX = "fleet+unix:";

/** The address of a store that is served on a Unix socket. */
export function unixAddress(path: string): string {
  return UNIX + path;
}

/**
 * `http(s)://host[:port][/path]` of a master, or `fleet+unix:/path`. Throws `FLEET_STORE_URL_INVALID`, and `FLEET_TOKEN_REFUSED` where
 * there is no token. A token never stands in the address: addresses end up in logs.
 */
export function parseTarget(url: string, token: string | undefined): RemoteTarget {
  const place = url.startsWith(UNIX) ? unixPlace(url) : httpPlace(url);
  if (token === undefined || token === "")
    throw new FleetError(
      "FLEET_TOKEN_REFUSED",
      `${place.shown} needs a token: give it by --token or FLEET_TOKEN (in code, as the option "token")`,
    );
  if (!/^[\x21-\x7e]{1,4096}$/.test(token))
    throw new FleetError("FLEET_OPTION_INVALID", "the token has characters that no token has; copy it again");
  return { ...place, token };
}

function unixPlace(url: string): Omit<RemoteTarget, "token"> {
  const socketPath = url.slice(UNIX.length);
  return { shown: url, url: `ws://localhost${STORE_PATH}`, socketPath };
}

function httpPlace(text: string): Omit<RemoteTarget, "token"> {
  const url = new URL(text);
  const shown = url.href.replace(/\/$/, "");
  const path = url.pathname.replace(/\/+$/, "");
  const scheme = url.protocol === "https:" ? "wss" : "ws";
  return { shown, url: `${scheme}://${url.host}${path}${STORE_PATH}`, socketPath: undefined };
}
