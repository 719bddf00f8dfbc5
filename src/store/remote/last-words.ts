import type { Duplex } from "node:stream";
import { after } from "../../internal/timers.ts";

/** So long the other side may take to read it and to hang up. */
const HANG_UP_MS = 500;

/**
 * Answers on a socket that nobody reads any more, and ends it: what still comes is thrown away for a moment, as data that lie unread would
 * have the system reset the link, at times before the answer was read; then the socket is destroyed, whatever the other side does.
 */
export function sayLast(socket: Duplex, text: string): void {
  socket.on("error", () => undefined);
  socket.end(text);
  hangUpSoon(socket);
}

/** The same for a socket on which somebody else has said the last. */
export function hangUpSoon(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.resume();
  const cut = after(HANG_UP_MS, () => socket.destroy());
  socket.once("close", () => cut.cancel());
}
