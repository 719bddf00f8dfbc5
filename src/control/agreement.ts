import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import type { TopicContract } from "../contracts/topic.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { eventBus, type EventInput, type Events } from "../primitives/events.ts";
import type { FleetView, Store } from "../store/store.ts";
import { checkContracts, edgeWords, liveManifests } from "./contract-check.ts";
import { driftOf } from "./drift.ts";

/**
 * Tells when a contract breaks or versions drift apart: once when it appears, in the log and as an event. The leader looks with each new
 * view; manifests are read only when a live worker has another version of something. A new leader knows nothing of what was told before,
 * and tells it again.
 */
export class Agreement {
  readonly #store: Pick<Store, "registry" | "events">;
  readonly #log: Log;
  readonly #events: Events;
  /** Which versions the live workers had at the last look. */
  #looked = "";
  #looking = false;
  #broken: ReadonlySet<string> = new Set();
  #drifts: ReadonlySet<string> = new Set();

  constructor(parts: { store: Pick<Store, "registry" | "events">; source: string; log: Log }) {
    this.#store = parts.store;
    this.#log = parts.log;
    this.#events = eventBus({ store: parts.store.events, source: parts.source, own: true });
  }

  /** Never throws: what fails is looked at again with the next view. */
  async look(view: Pick<FleetView, "workers" | "now">): Promise<void> {
    const live = view.workers
      .filter(({ expiresAt }) => expiresAt > view.now)
      .map(({ id, known }) => [
        id,
        Object.entries(known ?? {}).map(([name, { version }]) => [name, version]),
      ]);
    const versions = JSON.stringify(live);
    if (versions === this.#looked || this.#looking) return;
    this.#looking = true;
    try {
      await this.#lookAnew(view);
      this.#looked = versions;
    } catch (error) {
      this.#log.debug("contracts were not compared", { error: messageOf(error) });
    } finally {
      this.#looking = false;
    }
  }

  async #lookAnew({ workers, now }: Pick<FleetView, "workers" | "now">): Promise<void> {
    const manifests = await this.#store.registry.manifests();
    const drifts = driftOf(workers, now);
    const keyOf = ({ automation, versions }: (typeof drifts)[number]) =>
      [automation, ...versions.map(({ version }) => version)].join(" ");
    for (const drift of drifts.filter((one) => !this.#drifts.has(keyOf(one)))) {
      const { automation, versions } = drift;
      this.#log.info(`workers have different versions of "${automation}"`, {
        versions: versions.map(({ version, workers: ids }) => `${version} on ${ids.join(", ")}`).join("; "),
      });
      this.#tell(FLEET_TOPICS.versionDrift, {
        automation,
        versions: versions.map(({ version }) => version),
        workers: versions.flatMap(({ workers: ids }) => ids).toSorted(),
      });
    }
    this.#drifts = new Set(drifts.map(keyOf));

    const broken = checkContracts(liveManifests(manifests, workers, now)).filter(
      ({ outcome }) => outcome === "broken",
    );
    for (const edge of broken.filter((one) => !this.#broken.has(edgeWords(one)))) {
      const { kind, name, giver, taker, pointer } = edge;
      this.#log.warn(`a contract is broken: ${edgeWords(edge)}`);
      this.#tell(FLEET_TOPICS.contractBroken, {
        kind,
        name,
        giver: giver.automation,
        giverVersion: giver.version,
        taker: taker.automation,
        takerVersion: taker.version,
        pointer: pointer ?? "",
        reason: edge.words ?? "",
      });
    }
    this.#broken = new Set(broken.map(edgeWords));
  }

  #tell<T extends TopicContract>(topic: T, payload: EventInput<T>): void {
    this.#events
      .publish(topic, payload)
      .catch((error: unknown) =>
        this.#log.debug(`${topic.name} was not published`, { error: messageOf(error) }),
      );
  }
}
