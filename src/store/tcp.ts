import { once } from "node:events";
import { connect, type Socket } from "node:net";

/**
 * A connection for TLS to be laid over. Who makes it by itself can reset it: TLS alone has no means to, and the system goes on trying to
 * deliver what a closed connection has left to send. Throws what the connection meets, or when `signal` aborts.
 */
export async function connectTcp(to: { host: string; port: number }, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ ...to, noDelay: true });
  try {
    await once(socket, "connect", { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Ends a connection at once, with all that has not left this machine. What lies on the other side unread goes as well. */
export function resetTcp(socket: Socket): void {
  // Whoever laid TLS over it hears of its end; nobody else listens for its errors.
  socket.on("error", () => undefined);
  socket.resetAndDestroy();
}
