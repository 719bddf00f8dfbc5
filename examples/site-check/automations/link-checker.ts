// Asks for one address per task, without reading it.
import { defineBatch, RetryAfter } from "fleet-framework";
import { LINK_CHECKER, REPORT } from "../contracts.ts";
import { ask, type Fetched, TryLater } from "../fetching.ts";

export default defineBatch("link-checker", {
  tasks: LINK_CHECKER,
  uses: { submit: [REPORT] },
  async runOne(task, ctx) {
    const { url } = task.payload;
    let answer: Pick<Fetched, "status" | "ms" | "redirectedTo" | "error">;
    try {
      answer = await ask(url, "HEAD", ctx.signal);
      // Some hosts refuse HEAD, or answer it with nonsense.
      if (answer.status >= 400) answer = await ask(url, "GET", ctx.signal);
      if (answer.status === 0 && task.attempt < 2) throw new RetryAfter(2);
    } catch (error) {
      if (!(error instanceof TryLater)) throw error;
      if (task.attempt < 2) throw new RetryAfter(error.seconds);
      answer = { status: 0, ms: 0, redirectedTo: null, error: error.message };
    }
    const { status, ms, redirectedTo, error } = answer;
    await ctx.submit(
      REPORT,
      { kind: "link", url, status, ms, redirectedTo, error },
      { id: `link-${task.id}` },
    );
  },
});
