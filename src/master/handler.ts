import type { z } from "zod";
import type { Params, Route, RouteAnswer } from "../client/route.ts";
import type { RouteName, Routes } from "../client/routes.ts";
import type { Identity } from "./http/authorise.ts";
import type { Services } from "./services.ts";

/** A request that has been authorised and checked against its route. */
export interface Asked<R extends Route> {
  params: Params<R>;
  query: R["query"] extends z.ZodType ? z.output<R["query"]> : undefined;
  body: R["body"] extends z.ZodType ? z.output<R["body"]> : undefined;
  ifMatch: string | undefined;
  idempotencyKey: string | undefined;
  /** Aborts when the caller has gone, or the master ends. */
  signal: AbortSignal;
  by: Identity;
}

/** An answer that is JSON text already, byte for byte. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** So many things in a row were left out for a reader that is too slow, at this place. */
export class Gap {
  missed = 1;
}

/** What a route of events yields. */
export interface EventSource<T = unknown> extends AsyncIterable<T> {
  /** Nothing goes by unseen from then on: the caller is told nothing before. Left out: at once. */
  readonly ready?: Promise<void>;
}

export type Handler<R extends Route> = (
  asked: Asked<R>,
  services: Services,
) => R["events"] extends true
  ? EventSource<RouteAnswer<R> | RawJson | Gap>
  : Promise<RouteAnswer<R> | RawJson>;

/** Handlers of some routes; the type knows what each is asked and has to answer. */
export type Handlers<Names extends RouteName = RouteName> = {
  readonly [Name in Names]: Handler<Routes[Name]>;
};
