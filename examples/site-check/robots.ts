// What a host asks of programs that read it, kept for an hour.
import robotsParser, { type Robot } from "robots-parser";

// The package is a CommonJS function, which its types do not say.
const parse = robotsParser as unknown as (url: string, text: string) => Robot;

const KEEP_MS = 3_600_000;
const kept = new Map<string, { rules: Promise<Robot>; until: number }>();

export async function mayRead(url: string, signal: AbortSignal): Promise<boolean> {
  const { origin } = new URL(url);
  let entry = kept.get(origin);
  if (entry === undefined || entry.until < Date.now()) {
    entry = { rules: rulesOf(origin, signal), until: Date.now() + KEEP_MS };
    kept.set(origin, entry);
    entry.rules.catch(() => kept.delete(origin));
  }
  return (await entry.rules).isAllowed(url, "fleet-site-check") ?? true;
}

async function rulesOf(origin: string, signal: AbortSignal): Promise<Robot> {
  const address = `${origin}/robots.txt`;
  try {
    const response = await fetch(address, { signal });
    return parse(address, response.ok ? await response.text() : "");
  } catch (error) {
    if (signal.aborted) throw error;
    // A host that does not answer asks for nothing; its pages will not answer either, and that is a finding.
    return parse(address, "");
  }
}
