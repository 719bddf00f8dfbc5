/** What the parent handed to this child. */
export function readInput<In>(): Promise<In> {
  return new Promise((resolve) => {
    process.once("message", (message) => resolve((message as { input: In }).input));
  });
}

/** Resolves when the message has left this process. */
export function tell(message: object): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}
