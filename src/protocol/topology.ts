/**
 * Who uses what: the words of the graph, and its form as JSON (`fleet graph --format json`, `GET /topology`). An edge points the way that
 * data goes: from who gives to who gets.
 */

/** What is used, by the direction in which it is used. */
export const KIND_OF_DIRECTION = {
  /** An automation, to its own stream. */
  emit: "stream",
  /** Somebody outside of all automations, to a stream. */
  push: "stream",
  pop: "stream",
  submit: "queue",
  /** A batch automation runs the tasks of its own queue. */
  run: "queue",
  put: "pool",
  claim: "pool",
  publish: "topic",
  subscribe: "topic",
  /** A pool, to the queue by which it is kept filled. */
  refill: "queue",
} as const;
export type Direction = keyof typeof KIND_OF_DIRECTION;
/** What automations use. */
export type UsedKind = (typeof KIND_OF_DIRECTION)[Direction];

/** Directions in which data comes to who uses it; in all others it goes from them. */
export const TAKING: ReadonlySet<Direction> = new Set(["pop", "run", "claim", "subscribe"]);

/** Who uses something: an automation; a program outside that bears a name (`openFleet({ source })`); or a pool that is refilled. */
export interface User {
  kind: "automation" | "external" | "pool";
  name: string;
}

export type NodeKind = "automation" | "external" | UsedKind;

/** Points in time are Unix milliseconds of the store, durations seconds. */
export interface Topology {
  now: number;
  nodes: TopologyNode[];
  edges: TopologyEdge[];
  /** Streams, queues and pools that were not looked into, because there are too many: they have no figures. */
  without_figures: number;
}

interface NodeOf<K extends NodeKind> {
  /** `kind:name`; unique. */
  id: string;
  kind: K;
  name: string;
}

export type TopologyNode =
  | AutomationNode
  | StreamNode
  | QueueNode
  | PoolNode
  | TopicNode
  | NodeOf<"external">;

export interface AutomationNode extends NodeOf<"automation"> {
  /** Null where no worker has published it. */
  type: "continuous" | "batch" | null;
  /** Null while nothing is deployed under that name. */
  slots: number | null;
  paused: boolean;
  /** Slots that live workers report as running. */
  running: number;
}

/** What streams, queues, pools and topics have in common: by the edges that were observed. */
interface Rates {
  /** How many came in within about the last minute: entries, tasks, items put, events. */
  in_per_minute: number;
  /** How many went out within about the last minute: entries popped, tasks begun, items claimed, events received. */
  out_per_minute: number;
}

export interface StreamNode extends NodeOf<"stream">, Rates {
  /** Null where it was never declared, or not looked into. */
  figures: {
    depth: number;
    /** Age of its oldest entry; null when it is empty. */
    oldest_seconds: number | null;
    /** Of all time. */
    pushed: number;
    popped: number;
    /** Trimmed, expired, or of no use to who popped it. */
    lost: number;
  } | null;
}

export interface QueueNode extends NodeOf<"queue">, Rates {
  figures: {
    /** Tasks that wait, or are not due yet. */
    depth: number;
    active: number;
    /** In the dead letter. */
    failed: number;
    /** How long the oldest of those that wait has been there; null when none waits. */
    oldest_seconds: number | null;
    /** Of all time. */
    submitted: number;
    completed: number;
  } | null;
}

export interface PoolNode extends NodeOf<"pool">, Rates {
  figures: {
    /** Free items. */
    depth: number;
    held: number;
    cooling: number;
    retired: number;
    /** Who waits for an item, at most 100, and since when the first of them does; null when nobody does. */
    waiting: number;
    oldest_seconds: number | null;
    /** Of all time. */
    put: number;
    claimed: number;
  } | null;
}

export type TopicNode = NodeOf<"topic"> & Rates;

export interface TopologyEdge {
  /** Ids of nodes. */
  from: string;
  to: string;
  /** `match`: a topic is among those that a pattern takes in. */
  direction: Direction | "match";
  /** A definition says so. */
  declared: boolean;
  /** Null where it was not seen in use within the last day. */
  observed: {
    /** How many, since it was seen first. */
    count: number;
    first_seen_at: number;
    last_seen_at: number;
    /** How many within about the last minute. */
    per_minute: number;
  } | null;
}
