import type { FromHost, ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { Flight } from "./flight-mark.ts";

/** How a host ended, and what it left as traces. */
export interface HostExit {
  code: number | null;
  signal: string | null;
  flight: Flight;
  /** The end of what it wrote to its standard error, at most 4000 characters. */
  stderr: string;
  /** It wrote more than that; left out where it did not. */
  stderrCut?: boolean;
}

/** A place where slots of one automation run: a child process, or (inline) this process. */
export interface Host {
  readonly pid: number | null;
  /** Under which name it claims tasks; unique for ever. */
  readonly holder: string;
  tell(message: ToHost): void;
  /** What it runs, read without its help. */
  flight(): Flight;
  /** Ends it at once, with all processes it started, whether or not they left its group. */
  kill(): void;
}

/** Who a host is to the queue that it claims from: the worker's process, and which of its hosts. */
export function holderOf(incarnation: string, started: number): string {
  return `${incarnation}.${started}`;
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
