// Prints what is said on the event bus about alerts. A mail, a ticket or a chat message would go out from here.
import { defineContinuous } from "fleet-framework";
import { Alert } from "../contracts.ts";

export default defineContinuous("alerts", {
  uses: { subscribe: [{ kind: "topic", name: "alerts.*" }] },

  async runSlot(ctx) {
    for await (const event of ctx.events.subscribe("alerts.*")) {
      // Anybody may publish on the bus: check before use.
      const alert = Alert.safeParse(event.payload);
      if (!alert.success) continue;
      const { host, metric, state, usedPercent, limitPercent, at } = alert.data;
      const time = new Date(at).toTimeString().slice(0, 8);
      console.log(
        `${time} ${state.padEnd(7)} ${metric} of ${host}: ${usedPercent} % (limit ${limitPercent} %)`,
      );
      // Fire and forget means that some may be lost; the bus tells how many.
      if (event.missed > 0) ctx.log.warn("alerts were missed", { topic: event.topic, missed: event.missed });
    }
  },
});
