import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { HelperCalls, HelperReply } from "./helper-calls.ts";

export interface Helper {
  call<C extends keyof HelperCalls>(
    name: C,
    args: Parameters<HelperCalls[C]>[0],
  ): Promise<ReturnType<HelperCalls[C]>>;
  stop(): void;
}

/** Starts another process of the benchmark. It ends when this one does. */
export function startHelper(): Helper {
  const child = fork(fileURLToPath(new URL("./helper.mjs", import.meta.url)), {
    execArgv: ["--enable-source-maps"],
  });
  const waiting = new Map<number, (reply: HelperReply) => void>();
  let lastId = 0;
  child.on("message", (reply: HelperReply) => {
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  });
  child.once("exit", (code) => {
    for (const [id, settle] of waiting) settle({ id, error: `the helper process ended (exit code ${code})` });
  });
  return {
    call: <C extends keyof HelperCalls>(name: C, args: Parameters<HelperCalls[C]>[0]) =>
      new Promise<ReturnType<HelperCalls[C]>>((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, (reply) => {
          if ("error" in reply) reject(new Error(reply.error));
          else resolve(reply.value as ReturnType<HelperCalls[C]>);
        });
        child.send({ id, call: name, args });
      }),
    stop: () => void child.kill("SIGKILL"),
  };
}
