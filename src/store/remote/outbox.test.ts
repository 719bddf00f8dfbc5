import { expect, test } from "vitest";
import { Outbox } from "./outbox.ts";

/** A socket that writes only when it is told to. */
function slowSocket() {
  const frames: string[] = [];
  const done: (() => void)[] = [];
  return {
    frames,
    send: (frame: string, written: () => void) => {
      frames.push(frame);
      done.push(written);
    },
    write: () => done.shift()?.(),
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const long = (letter: string, length: number) => JSON.stringify(letter.repeat(length - 2));

test("what is said in one turn goes as one frame, in order, the urgent first", async () => {
  const socket = slowSocket();
  const out = new Outbox(socket);
  for (const text of ["1", "2"]) out.add(text);
  out.add("3", { urgent: true });
  expect(socket.frames).toEqual([]);
  await turn();
  out.add("4");
  await turn();
  expect(socket.frames).toEqual(["[3,1,2]", "[4]"]);
});

test("a socket is given only so much, and what is urgent goes before what waits", async () => {
  const socket = slowSocket();
  const out = new Outbox(socket);
  const letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const messages = letters.map((letter) => out.add(long(letter, 300_000)));
  await turn();
  expect(socket.frames.map((frame) => frame[2])).toEqual(["a", "b", "c", "d"]);
  expect(messages.map(({ sent }) => sent)).toEqual([true, true, true, true, false, false, false, false]);
  out.add('"urgent"', { urgent: true });
  const size = out.size;
  socket.write();
  await turn();
  expect(socket.frames.slice(4)).toEqual(['["urgent"]', `[${long("e", 300_000)}]`]);
  expect(out.size).toBeLessThan(size);
  for (let i = 0; i < 10; i++) {
    socket.write();
    await turn();
  }
  expect(socket.frames.map((frame) => frame[2]).join("")).toBe("abcduefgh");
  expect(out.size).toBe(0);
});

test("what is dropped is not sent, and what was sent says so", async () => {
  const socket = slowSocket();
  const out = new Outbox(socket);
  const sent: number[] = [];
  const [first, second] = [1, 2].map((n) => out.add(String(n), { onSent: () => sent.push(n) }));
  if (first !== undefined) first.dropped = true;
  await turn();
  expect(socket.frames).toEqual(["[2]"]);
  expect([first?.sent, second?.sent, sent]).toEqual([false, true, [2]]);
});

test("thousands keep their order", async () => {
  const socket = slowSocket();
  const out = new Outbox(socket);
  const all = Array.from({ length: 5000 }, (_, n) => n);
  for (const n of all) {
    out.add(String(n));
    if (n % 700 === 0) await turn();
  }
  await turn();
  expect(socket.frames.flatMap((frame) => JSON.parse(frame) as number[])).toEqual(all);
});

test("once closed it sends nothing", async () => {
  const socket = slowSocket();
  const out = new Outbox(socket);
  out.add("1");
  out.close();
  out.add("2");
  await turn();
  expect(socket.frames).toEqual([]);
  expect(out.size).toBe(0);
});
