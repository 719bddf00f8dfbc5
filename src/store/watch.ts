/** A subscription to hints or events. `ready` resolves once nothing published from then on can be overlooked. */
export interface Watch {
  readonly ready: Promise<void>;
  close(): Promise<void>;
}
