import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** A process's measurements in the Prometheus text format. Names start with `nodus_` and end with their unit. */
export class Metrics {
  readonly #registry = new Registry();

  /** `role` becomes a label of every measurement. */
  constructor(role: string) {
    this.#registry.setDefaultLabels({ role });
    collectDefaultMetrics({ register: this.#registry, prefix: "nodus_" });
  }

  /** Something that only grows. `name` ends with `_total`. */
  counter<L extends string>(name: `nodus_${string}_total`, help: string, labelNames: readonly L[] = []): Counter<L> {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  /** A distribution of durations. `name` ends with `_seconds`. */
  duration<L extends string>(
    name: `nodus_${string}_seconds`,
    help: string,
    labelNames: readonly L[] = [],
  ): Histogram<L> {
    const buckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];
    return new Histogram({ name, help, labelNames: [...labelNames], buckets, registers: [this.#registry] });
  }

  /** Something that goes up and down. `read`, if given, is asked whenever the measurements are. */
  gauge<L extends string>(
    name: `nodus_${string}`,
    help: string,
    labelNames: readonly L[] = [],
    read?: () => number | Promise<number>,
  ): Gauge<L> {
    return new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      ...(read && {
        async collect(this: Gauge<L>) {
          this.set(await read());
        },
      }),
    });
  }

  /** Several of one name, told apart by `label`; `read` is asked whenever the measurements are. */
  gauges<L extends string>(
    name: `nodus_${string}`,
    help: string,
    label: L,
    read: () => Readonly<Record<string, number>>,
  ): void {
    const gauge: Gauge<L> = new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      collect: () => {
        for (const [value, count] of Object.entries(read())) gauge.labels(value).set(count);
      },
    });
  }

  /** The body of `/metrics` and its media type. */
  async text(): Promise<{ contentType: string; body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }

  /** Forgets everything; for the end of a process or test. */
  clear(): void {
    this.#registry.clear();
  }
}
