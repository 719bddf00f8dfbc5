import type { FromHost, ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";

/** How a host ended, and what it left as traces. */
export interface HostExit {
  code: number | null;
  signal: string | null;
  /** The slot whose code ran last, where that is known. */
  lastSlot: number | null;
  /** The end of what it wrote to its standard error, at most 4000 characters. */
  stderr: string;
}

/** A place where slots of one automation run: a child process, or (inline) this process. */
export interface Host {
  readonly pid: number | null;
  tell(message: ToHost): void;
  /** Ends it at once, with all processes it started, whether or not they left its group. */
  kill(): void;
}

/** Starts hosts. The two runtimes behind it differ in nothing that the supervisor sees. */
export interface Runtime {
  start(
    automation: ProgramAutomation,
    hear: (message: FromHost) => void,
    /** Called once, when the host and all that it started are gone. */
    exited: (exit: HostExit) => void,
  ): Host;
  /** Ends what supports it; after the last host has ended. */
  close(): Promise<void>;
}
