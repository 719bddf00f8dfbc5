// What the project loader and the child that reads users' modules say to each other. Plain data only.
import type { Manifest } from "../protocol/manifest.ts";
import type { ProjectConfig } from "./config.ts";

export interface DescribeRequest {
  kind: "automations" | "config";
  /** The project's folder, for paths in messages. */
  dir: string;
  modules: readonly ModuleToRead[];
}

export interface ModuleToRead {
  source: string;
  module: string;
  version: string;
}

export interface DescribedAutomation {
  manifest: Manifest;
  env?: readonly string[];
  isolate: "automation" | "slot";
}

export type DescribeMessage =
  /** About to load this source; names the culprit when nothing comes after it. */
  | { type: "loading"; source: string }
  | { type: "automations"; source: string; automations: DescribedAutomation[] }
  | { type: "config"; source: string; config: ProjectConfig }
  | { type: "failed"; source: string; code: string; message: string }
  | { type: "done" };
