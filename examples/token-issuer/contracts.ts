// What issuer and caller share: the stream of tokens, and the queue of calls.
import { defineQueue, defineStream } from "fleet-framework/contracts";
import { z } from "zod";

export const TOKEN_SECONDS = 30;

export const Token = z.object({
  token: z.string(),
  /** Unix milliseconds. */
  validUntil: z.number(),
  issuer: z.string(),
});

/** Tokens that nobody has used yet; they leave the stream before they end. */
export const TOKENS = defineStream("token-issuer", Token, { maxLength: 20, ttlSeconds: TOKEN_SECONDS * 0.8 });

export const CALLER = defineQueue("caller", {
  payload: z.object({ path: z.string() }),
  result: z.object({ path: z.string(), issuer: z.string() }),
});
