// Imported before all else: this process's wall clock is wrong by `CLOCK_OFFSET_MS`. Monotonic clocks are as they were.
const Right = Date;
const offsetMs = Number(process.env["CLOCK_OFFSET_MS"] ?? 0);

/** What the machine's clock really shows, Unix ms. */
export const machineNow = (): number => Right.now();

globalThis.Date = new Proxy(Right, {
  construct: (target, args, made) =>
    Reflect.construct(target, args.length === 0 ? [Right.now() + offsetMs] : args, made) as Date,
  get: (target, name, self) =>
    name === "now" ? () => Right.now() + offsetMs : (Reflect.get(target, name, self) as unknown),
});
