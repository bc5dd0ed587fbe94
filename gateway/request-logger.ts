import type { FastifyBaseLogger } from "fastify";

/**
 * The logger of one request, made when the first line is written: nearly every request writes none, and to make one
 * takes its members through all rules of redaction.
 */
export function lazyRequestLogger(parent: FastifyBaseLogger, ...making: Making): FastifyBaseLogger {
  return new LazyLogger(parent, ...making) as unknown as FastifyBaseLogger;
}

/** What a logger of its own is made of: its members, and what else differs from the parent. */
type Making = Parameters<FastifyBaseLogger["child"]>;
type Line = [fields: object, message?: string];

class LazyLogger {
  readonly #parent: FastifyBaseLogger;
  readonly #making: Making;
  #made: FastifyBaseLogger | null = null;

  constructor(parent: FastifyBaseLogger, ...making: Making) {
    this.#parent = parent;
    this.#making = making;
  }

  get level(): string {
    return this.#own().level;
  }

  set level(level: string) {
    this.#own().level = level;
  }

  child(...making: Making): FastifyBaseLogger {
    return this.#own().child(...making);
  }

  trace(...line: Line): void {
    this.#own().trace(...line);
  }

  debug(...line: Line): void {
    this.#own().debug(...line);
  }

  info(...line: Line): void {
    this.#own().info(...line);
  }

  warn(...line: Line): void {
    this.#own().warn(...line);
  }

  error(...line: Line): void {
    this.#own().error(...line);
  }

  fatal(...line: Line): void {
    this.#own().fatal(...line);
  }

  silent(): void {}

  #own(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(...this.#making);
    return this.#made;
  }
}
