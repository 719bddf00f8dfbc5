/**
 * What is to go out over one socket. What comes in one turn of the event loop goes as one frame. Only so much is handed to the socket at a
 * time; the rest waits here, where what is urgent can still go before it and what nobody waits for any more can be left out.
 */
export interface Socket {
  send(frame: string, done: (error?: Error) => void): void;
}

export interface Message {
  /** JSON text. */
  readonly text: string;
  readonly urgent: boolean;
  /** Handed to the socket: from now on it may reach the other side. */
  sent: boolean;
  /** Not to be sent any more. */
  dropped: boolean;
  readonly onSent?: (() => void) | undefined;
}

/** Characters per frame, if no single message is longer. */
const FRAME = 256 * 1024;
/** Characters that the socket is given before it has written some of them. */
const WINDOW = 1024 * 1024;

export class Outbox {
  readonly #socket: Socket;
  readonly #urgent: Message[] = [];
  readonly #plain: Message[] = [];
  /** Index of the first of `#plain` that still waits. */
  #first = 0;
  #waiting = 0;
  #given = 0;
  #scheduled = false;
  #closed = false;
  /** Called whenever something has gone. */
  onDrain: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Characters that wait here, or in the socket. */
  get size(): number {
    return this.#waiting + this.#given;
  }

  add(text: string, { urgent = false, onSent }: { urgent?: boolean; onSent?: () => void } = {}): Message {
    const message: Message = { text, urgent, sent: false, dropped: false, onSent };
    if (this.#closed) return message;
    (urgent ? this.#urgent : this.#plain).push(message);
    this.#waiting += text.length;
    this.#schedule();
    return message;
  }

  /** Nothing goes out any more. */
  close(): void {
    this.#closed = true;
    this.#urgent.length = 0;
    this.#plain.length = 0;
    this.#first = 0;
    this.#waiting = 0;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (!this.#closed && this.#given < WINDOW) {
      const frame = this.#frame();
      if (frame === undefined) return;
      const { length } = frame;
      this.#given += length;
      this.#socket.send(frame, () => {
        this.#given -= length;
        this.onDrain();
        if (this.#waiting > 0 && !this.#closed) this.#schedule();
      });
    }
  }

  #frame(): string | undefined {
    const texts: string[] = [];
    let length = 0;
    while (length < FRAME) {
      const next = this.#next(length === 0 ? Number.POSITIVE_INFINITY : FRAME - length);
      if (next === undefined) break;
      if (next.dropped) continue;
      texts.push(next.text);
      length += next.text.length;
      next.sent = true;
      next.onSent?.();
    }
    return texts.length === 0 ? undefined : `[${texts.join(",")}]`;
  }

  /** Takes the next message out, if it has room. */
  #next(room: number): Message | undefined {
    const urgent = this.#urgent[0];
    const message = urgent ?? this.#plain[this.#first];
    if (message === undefined || (message.text.length > room && !message.dropped)) return undefined;
    this.#waiting -= message.text.length;
    if (urgent !== undefined) this.#urgent.shift();
    else this.#forward();
    return message;
  }

  /** Shifting a long array for each message would cost more than sending it. */
  #forward(): void {
    this.#first += 1;
    if (this.#first < 1024 && this.#first < this.#plain.length) return;
    this.#plain.splice(0, this.#first);
    this.#first = 0;
  }
}
