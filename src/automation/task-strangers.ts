import { strangers, type Held } from "./task-held.ts";

const MOST_GIVEN_BACK = 10_000;

/**
 * Claims that the store tells of and nobody in this process knows: they come from calls whose answer was lost. One is given back once no
 * call is under way any more that might bring it, and the store has told of it again.
 */
export class Strangers {
  /** With the number of the last call that might still bring them. */
  #seen = new Map<string, number>();
  /** One that comes late all the same (a hand-off that waited for a busy loop) is not begun. */
  readonly #givenBack = new Set<string>();

  /** Those to be given back now. `calls`: numbers of those that have not been answered; `lastCall`: of the last one that was made. */
  find(
    held: readonly Held[],
    known: ReadonlySet<string>,
    calls: ReadonlySet<number>,
    lastCall: number,
  ): Held[] {
    const before = this.#seen;
    this.#seen = new Map();
    const found: Held[] = [];
    for (const one of strangers(held, known)) {
      const { token } = one;
      const bringing = before.get(token);
      if (bringing === undefined) this.#seen.set(token, lastCall);
      else if ([...calls].some((call) => call <= bringing)) this.#seen.set(token, bringing);
      else {
        found.push(one);
        this.#forgo(token);
      }
    }
    return found;
  }

  wasGivenBack(token: string): boolean {
    return this.#givenBack.has(token);
  }

  #forgo(token: string): void {
    this.#givenBack.add(token);
    const [oldest] = this.#givenBack;
    if (this.#givenBack.size > MOST_GIVEN_BACK && oldest !== undefined) this.#givenBack.delete(oldest);
  }
}
