import type { Direction } from "../protocol/topology.ts";

/**
 * Told of what handles are used for, after it has succeeded: how many entries, tasks, items or events went in which direction. 0: something was
 * asked for, and nothing has come yet. Called often; must neither throw nor take long.
 */
export type OnUse = (direction: Direction, name: string, count: number) => void;
