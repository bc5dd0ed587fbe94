/** Nouns of other domains that `node` finds. */
export const FOREIGN_NOUNS = ["asset", "secret", "connection", "pool", "workspace"] as const;
export type ForeignNoun = (typeof FOREIGN_NOUNS)[number];
