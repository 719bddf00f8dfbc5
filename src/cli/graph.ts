import { type Command, Option } from "commander";
import { readTopology } from "../control/read-topology.ts";
import { FleetError } from "../errors.ts";
import type { Topology } from "../protocol/topology.ts";
import { dotGraph } from "./graph-dot.ts";
import { mermaidGraph } from "./graph-mermaid.ts";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

const FORMATS = ["mermaid", "dot", "json"] as const;
type Format = (typeof FORMATS)[number];

interface GraphFlags extends TargetFlags {
  format?: Format;
  framework?: boolean;
}

const RENDER: Record<Format, (topology: Topology) => string> = {
  mermaid: mermaidGraph,
  dot: dotGraph,
  json: (topology) => `${JSON.stringify(topology)}\n`,
};

/** `fleet graph`: who uses what, straight from the store. */
export function addGraph(program: Command, terminal: Terminal): void {
  addTargetOptions(program.command("graph").description("who uses what: automations, streams, queues, pools"))
    .addOption(new Option("--format <format>", 'how it is written; default "mermaid"').choices(FORMATS))
    .option("--framework", "also topics under fleet., the framework's own")
    .addHelpText(
      "after",
      `
Examples:
  fleet graph                                  for a Markdown page
  fleet graph --format dot | dot -Tsvg > fleet.svg
  fleet graph --json | jq '.edges[] | select(.declared | not)'`,
    )
    .action((_options, command: Command) => {
      const flags = command.optsWithGlobals<GraphFlags>();
      const format = flags.format ?? (terminal.json ? "json" : "mermaid");
      if (terminal.json && format !== "json")
        throw new FleetError(
          "FLEET_USAGE",
          `--json and --format ${format} do not go together; give one of them`,
        );
      const { framework = false } = flags;
      return withStore(flags, async (store) => {
        terminal.print(RENDER[format](await readTopology(store, { framework })));
      });
    });
}
