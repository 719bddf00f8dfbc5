import type { Command } from "commander";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { statusReport } from "./status-report.ts";
import { renderStatus } from "./status-view.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

export function addStatus(program: Command, terminal: Terminal): void {
  addTargetOptions(program.command("status").description("workers, and what each slot does"))
    .addHelpText("after", "\nExamples:\n  fleet status\n  fleet status --store redis://localhost:6379 --json")
    .action((_options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store, target) => {
        const report = statusReport(await store.registry.view());
        const head = { fleet: store.fleetId, store: target.shown, namespace: target.namespace };
        terminal.print(
          terminal.json
            ? `${JSON.stringify({ ...head, ...report })}\n`
            : renderStatus(report, terminal.colors(1)),
        );
      }),
    );
}
