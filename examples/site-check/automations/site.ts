// Serves a folder of HTML files to this machine, so that they can be checked as the site that they will be.
import { createServer } from "node:http";
import { once } from "node:events";
import { defineContinuous } from "fleet-framework";
import sirv from "sirv";
import { z } from "zod";

export default defineContinuous("site", {
  config: z.object({ folder: z.string(), port: z.number().int() }),
  async runSlot(ctx) {
    const serve = sirv(ctx.config.folder, { dev: true });
    const server = createServer((request, response) =>
      serve(request, response, () => {
        response.statusCode = 404;
        response.end();
      }),
    );
    server.listen(ctx.config.port, "127.0.0.1");
    await once(server, "listening");
    ctx.log.info("serving", { folder: ctx.config.folder, port: ctx.config.port });
    while (!ctx.signal.aborted) await ctx.sleep(60);
    server.closeAllConnections();
    server.close();
  },
});
