/**
 * Collects items that come one by one and hands them on together: while one hand-over is under way the next batch
 * grows. Each call resolves with its own item's answer.
 */
export function coalesce<I, A>(handOver: (items: readonly I[]) => Promise<readonly A[]>): (item: I) => Promise<A> {
  let waiting: { item: I; resolve: (answer: A) => void; reject: (error: unknown) => void }[] = [];
  let busy = false;
  const run = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const answers = await handOver(batch.map((w) => w.item));
        for (const [i, w] of batch.entries()) w.resolve(answers[i]!);
      } catch (error) {
        for (const w of batch) w.reject(error);
      }
    }
    busy = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!busy) void run();
    });
}
