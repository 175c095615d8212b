/** What a reply is made of for a trajectory file of mini-swe-agent, and what comes of it. */

export type Json = Record<string, unknown>;

/** A reply, from its body or from what the history kept of it. */
export interface Recorded {
  /** The body; of a replay it has chat's form, and `native` holds what the provider sent. */
  readonly body: Json;
  readonly native: unknown;
  /** The assistant message of the history; null for a reply that the history does not have. */
  readonly message: Json | null;
  /** Seconds since 1970. */
  readonly at: number;
}

export interface Published {
  /** null: the reply is not in the history. */
  readonly message: Json | null;
  readonly response: Json;
}
