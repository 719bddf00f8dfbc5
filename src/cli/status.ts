import type { Command } from "commander";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { statusReport } from "../control/status-report.ts";
import { renderStatus } from "./status-view.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

interface StatusFlags extends TargetFlags {
  wide?: boolean;
}

export function addStatus(program: Command, terminal: Terminal): void {
  addTargetOptions(program.command("status").description("workers, and what each slot does"))
    .option("--wide", "also each slot's task, process, memory, CPU and event loop lag")
    .addHelpText("after", "\nExamples:\n  fleet status\n  fleet status --store redis://localhost:6379 --json")
    .action((_options, command: Command) => {
      const flags = command.optsWithGlobals<StatusFlags>();
      return withStore(flags, async (store, target) => {
        const { registry } = store;
        const [view, health, manifests] = await Promise.all([
          registry.view(),
          registry.slotHealth(),
          registry.manifests(),
        ]);
        const report = statusReport(view, health, manifests, await store.damaged());
        const head = { fleet: store.fleetId, store: target.shown, namespace: target.namespace };
        terminal.print(
          terminal.json
            ? `${JSON.stringify({ ...head, ...report })}\n`
            : renderStatus(report, terminal.colors(1), {
                wide: flags.wide ?? false,
                where: ` in ${target.shown}${target.namespace === "" ? "" : `, namespace ${target.namespace}`}`,
              }),
        );
      });
    });
}
