// Whether a server listens: asks for a connection, and hangs up.
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const PATIENCE_MS = 15_000;
const AGAIN_MS = 100;

/** Waits until somebody accepts connections at that URL, or for long enough. Throws when the slot is to end. */
export async function listening(url: string, stop: AbortSignal): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    try {
      return await knock(url, stop);
    } catch {
      await delay(AGAIN_MS, undefined, { signal: stop });
    }
  }
}

/** Connects and hangs up. Throws where nobody accepts the connection. */
export async function knock(url: string, signal: AbortSignal): Promise<void> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)) });
  try {
    await once(socket, "connect", { signal });
  } finally {
    socket.destroy();
  }
}
