import type { ConfigOverride, DesiredAutomation } from "./spec.ts";
import type { Manifest } from "./manifest.ts";

/** One automation as a worker can start it: built code and the manifest read from it. Plain data, no user code. */
export interface ProgramAutomation {
  manifest: Manifest;
  /** Absolute path of the built module whose exports hold the definition. */
  module: string;
  /** The file the user wrote, for messages. */
  source: string;
  /** Names of environment variables that user code may see; undefined: all but Fleet's own. */
  env?: readonly string[];
  isolate: "automation" | "slot";
}

/** What a project asks for: its automations and the desired state it seeds. */
export interface Program {
  automations: readonly ProgramAutomation[];
  deploy: Readonly<Record<string, DeployEntry>>;
}

export interface DeployEntry {
  slots?: DesiredAutomation["slots"];
  config?: unknown;
  /** Changes of the config for workers with certain labels, applied in this order. */
  overrides?: readonly ConfigOverride[];
}
