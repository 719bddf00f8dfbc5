import pc from "picocolors";

type Colors = ReturnType<typeof pc.createColors>;

/** Where a command prints: data to stdout, everything else to stderr. */
export interface Terminal {
  /** Output for programs: `--json` was given. */
  json: boolean;
  /** Writes to stdout. */
  print: (text: string) => void;
  /** Writes to stderr. */
  complain: (text: string) => void;
  /** Colours for stdout (1) or stderr (2): none on a pipe, with `NO_COLOR`, or with `--json`. */
  colors(fd: 1 | 2): Colors;
}

export function openTerminal(): Terminal {
  const terminal: Terminal = {
    json: false,
    print: (text) => void process.stdout.write(text),
    complain: (text) => void process.stderr.write(text),
    colors(fd) {
      const stream = fd === 1 ? process.stdout : process.stderr;
      return pc.createColors(!terminal.json && wantsColor(stream));
    },
  };
  return terminal;
}

function wantsColor(stream: { isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
}

/** A reader that goes away (`| head`) ends the command quietly. */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  // Nobody is left to tell.
  process.stderr.on("error", () => undefined);
}
