// `fleet event …`: publishes to topics of the event bus, and shows what goes by.
import { hostname } from "node:os";
import type { Command } from "commander";
import { checkTopic } from "../contracts/name.ts";
import { followEvents } from "../control/follow-events.ts";
import { escapeControls } from "../internal/redact.ts";
import { eventBus } from "../primitives/events.ts";
import type { ReceivedEvent } from "../primitives/subscription.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, type TargetFlags, wholeNumber } from "./options.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

export function addEvent(program: Command, terminal: Terminal): void {
  const event = program
    .command("event")
    .description("publish events, or follow them")
    .addHelpText(
      "after",
      `\nExamples:\n  fleet event publish harvest.started '{"site":"a"}'\n  fleet event tail\n  fleet event tail 'fleet.slot.*' 'harvest.*' --json`,
    );
  addPublish(event, terminal);
  addTail(event, terminal);
}

function addPublish(event: Command, terminal: Terminal): void {
  addTargetOptions(
    event
      .command("publish")
      .argument("<topic>", "name of the topic")
      .argument("[payload]", "JSON; default null")
      .description("publish an event; whoever does not listen at that moment misses it"),
  )
    .option("--unchecked", "do not check the payload")
    .addHelpText(
      "after",
      "\nWhere a worker has published a schema for the topic (by an automation that declares its use), the payload is checked against it.",
    )
    .action((topic: string, payload: string | undefined, _options, command: Command) => {
      const flags = command.optsWithGlobals<TargetFlags & { unchecked?: boolean }>();
      return withStore(flags, async (store) => {
        const { parse } = await import("./task-submit.ts");
        const value = payload === undefined ? null : parse(payload, "the payload");
        if (flags.unchecked !== true) {
          const { checkEvent } = await import("../control/known-topic.ts");
          await checkEvent(store, checkTopic(topic), value);
        }
        await eventBus({ store: store.events, source: `cli:${hostname()}` }).publish(topic, value);
        if (terminal.json) terminal.print(`${JSON.stringify({ topic, published: true })}\n`);
      });
    });
}

function addTail(event: Command, terminal: Terminal): void {
  addTargetOptions(
    event
      .command("tail")
      .argument("[topics...]", "topics, or patterns with * for any run of characters; default all")
      .description("follow events, until Ctrl-C"),
  )
    .option("-n <count>", "end after so many", wholeNumber(1))
    .addHelpText(
      "after",
      "\nExamples:\n  fleet event tail\n  fleet event tail 'fleet.slot.*' harvest.started -n 10",
    )
    .action((topics: string[], options: { n?: number }, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), (store) =>
        tailEvents(store, topics.length === 0 ? ["*"] : topics, options.n ?? Infinity, terminal),
      ),
    );
}

async function tailEvents(
  store: Store,
  patterns: readonly string[],
  most: number,
  terminal: Terminal,
): Promise<void> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  const events = followEvents(store.events, { patterns, signal: stop.signal });
  await events.ready;
  if (!terminal.json) for (const pattern of patterns) terminal.complain(`listening to ${pattern}\n`);
  let left = most;
  for await (const event of events) {
    terminal.print(terminal.json ? `${JSON.stringify(event)}\n` : `${eventText(event, terminal)}\n`);
    left -= 1;
    if (left <= 0) return;
  }
}

function eventText(event: ReceivedEvent, terminal: Terminal): string {
  const { topic, payload, ts, source, seq, missed } = event;
  const { dim, bold, yellow } = terminal.colors(1);
  const gap = missed > 0 ? `${yellow(`(${missed} missed)`)} ` : "";
  return `${dim(new Date(ts).toISOString())} ${bold(topic)} ${dim(`#${seq} ${escapeControls(source)}`)} ${gap}${escapeControls(JSON.stringify(payload))}`;
}
