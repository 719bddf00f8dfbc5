export function findRedisServer(): string | undefined;
export function ensureRedisServer(say?: (line: string) => void): string;
