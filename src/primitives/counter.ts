export interface CounterOptions {
  /** Each key is a counter of its own; default none. */
  key?: string;
}

/**
 * A whole number that all automations and hosts share; 0 until it is first written. Each change is applied exactly once, also where an answer
 * is lost and the call is made again. What fails with `outcome: "unknown"` (the store was away for longer than a call may take) may have
 * been applied, once.
 */
export interface Counter {
  /** Answers the new value. `FLEET_COUNTER_OVERFLOW` beyond ±9 007 199 254 740 991; then nothing is changed. */
  add(by?: number): Promise<number>;
  get(): Promise<number>;
  /** Answers the value before. */
  set(value: number): Promise<number>;
  /** Sets it where it stands at `expected`; else it answers false and changes nothing. */
  compareAndSet(expected: number, value: number): Promise<boolean>;
}
