const INTERVAL_MS = 250;

/**
 * Stands in for a control group: looks at what a guest uses and tells once it is over its limit.
 * @returns a function that stops it
 */
export function watchMemory(memoryBytes: () => number, limitBytes: number, exceeded: () => void): () => void {
  const timer = setInterval(() => {
    if (memoryBytes() <= limitBytes) return;
    clearInterval(timer);
    exceeded();
  }, INTERVAL_MS);
  return () => clearInterval(timer);
}
