// P15: `fleet dev` from the command to a running slot, and from a save to the new code running.
import { config, makeProject } from "../project.ts";
import { line, type Line } from "../result.ts";
import { pause } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const automation = (version: number) => `import { defineContinuous } from "fleet-framework";
import { z } from "zod";

export default defineContinuous("speaker", {
  output: z.object({ version: z.number() }),
  async runSlot(ctx) {
    console.log("this is version ${version}.");
    for await (const _turn of ctx.loop({ everySeconds: 1 })) await ctx.emit({ version: ${version} });
  },
});
`;

export async function reload({ rounds }: Bench): Promise<Line[]> {
  const ready: number[] = [];
  const saved: number[] = [];
  const project = makeProject({ "fleet.config.ts": config("speaker", 1) });
  let version = 0;
  // The first round fills the caches of the file system and is not counted.
  for (let round = 0; round <= rounds; round++) {
    project.write("speaker.ts", automation(++version));
    const started = performance.now();
    const dev = project.fleet("dev");
    await dev.printed(`this is version ${version}.`);
    const readyMs = performance.now() - started;
    // The watcher starts beside the slots: give it a moment to be there.
    await pause(500);
    const saving = performance.now();
    project.write("speaker.ts", automation(++version));
    await dev.printed(`this is version ${version}.`);
    const savedMs = performance.now() - saving;
    await dev.stop();
    if (round === 0) continue;
    ready.push(readyMs);
    saved.push(savedMs);
  }
  await project.close();
  return [
    line({
      row: "P15",
      what: "`fleet dev` to the first slot running, SQLite",
      ours: { label: "fleet dev", unit: "ms", rounds: ready },
      target: { is: "at most", value: 1500 },
    }),
    line({
      row: "P15",
      what: "from a save to the new code running",
      ours: { label: "fleet dev", unit: "ms", rounds: saved },
      target: { is: "at most", value: 1000 },
    }),
  ];
}
