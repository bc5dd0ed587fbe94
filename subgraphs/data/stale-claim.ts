/** Another process has the work, or it is over: what this one still does has no effect. */
export class StaleClaim extends Error {
  override readonly name = "StaleClaim";

  /** @param what the work, such as `export` */
  constructor(what: string) {
    super(`another process has the ${what}`);
  }
}

/** Waits for what ends a piece of work or lets it go; where the claim is stale, that is another process's to do. */
export async function unlessStale(ending: Promise<void>): Promise<void> {
  try {
    await ending;
  } catch (error) {
    if (!(error instanceof StaleClaim)) throw error;
  }
}
