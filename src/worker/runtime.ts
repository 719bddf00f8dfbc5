import type { FromHost, ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";

/** How a host's process ended. */
export interface HostExit {
  code: number | null;
  signal: string | null;
}

/** A place where slots of one automation run: a child process, or (inline) this process. */
export interface Host {
  readonly pid: number | null;
  tell(message: ToHost): void;
  /** Ends it at once, with all processes it started. */
  kill(): void;
}

/** Starts hosts. The two runtimes behind it differ in nothing that the supervisor sees. */
export interface Runtime {
  start(
    automation: ProgramAutomation,
    hear: (message: FromHost) => void,
    exited: (exit: HostExit) => void,
  ): Host;
}
