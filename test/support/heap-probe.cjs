// Loaded before a process by NODE_OPTIONS: writes every five seconds how much its heap holds once all garbage is gone, to the file HEAP_PROBE.
// Children inherit the variables; only the worker itself writes.
const { renameSync, writeFileSync } = require("node:fs");
const { setFlagsFromString } = require("node:v8");
const { runInNewContext } = require("node:vm");

if (process.env.HEAP_PROBE !== undefined && process.argv[2] === "worker") {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  setInterval(() => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(`${process.env.HEAP_PROBE}.new`, String((heapUsed + external) / 1e6));
    renameSync(`${process.env.HEAP_PROBE}.new`, process.env.HEAP_PROBE);
  }, 5000).unref();
}
