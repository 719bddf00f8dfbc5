// Something to watch when no URL is given: a small web server on this machine with a healthy, a slow, a failing and a flapping
// endpoint. An automation need not produce or consume anything.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { defineContinuous } from "fleet-framework";
import { z } from "zod";

const SLOW_MS = 800;
/** The flapping endpoint is up for so long, then down for so long. */
const FLAP_MS = 4000;

export default defineContinuous("local-endpoints", {
  config: z.object({ port: z.number().int().min(1).max(65_535) }),

  async runSlot(ctx) {
    const server = createServer((request, response) => void answer(request.url ?? "/", response));
    server.listen(ctx.config.port, "127.0.0.1");
    // Throws when the port is taken: the slot then fails with that error and is tried again later.
    await once(server, "listening");

    for await (const _turn of ctx.loop({ everySeconds: 1 })) {
      // The server does the work; the turns only keep the slot alive until it is to end.
    }
    server.close();
    server.closeIdleConnections();
  },
});

async function answer(path: string, response: ServerResponse): Promise<void> {
  if (path === "/slow") await delay(SLOW_MS);
  response.writeHead(statusOf(path), { "content-type": "text/plain" }).end(`${path}\n`);
}

function statusOf(path: string): number {
  switch (path) {
    case "/healthy":
    case "/slow":
      return 200;
    case "/failing":
      return 500;
    case "/flapping":
      return Math.floor(Date.now() / FLAP_MS) % 2 === 0 ? 200 : 503;
    default:
      return 404;
  }
}
