import { connect } from "node:net";
import { pause } from "./rounds.ts";

/** Watches a Redis for `ms` and answers the commands that came, by the address of the client that sent them. */
export async function watchCommands(port: number, ms: number): Promise<Map<string, string[]>> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => (text += chunk));
  socket.write("MONITOR\r\n");
  await pause(ms);
  socket.destroy();
  const commands = new Map<string, string[]>();
  // +1790000000.123456 [0 127.0.0.1:43210] "EVALSHA" "…"; what scripts call themselves has "lua" in place of the address.
  for (const [, client = "", command = ""] of text.matchAll(/^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/gm)) {
    if (client === "lua") continue;
    commands.set(client, [...(commands.get(client) ?? []), command]);
  }
  return commands;
}
