import DataLoader from "dataloader";

/** Makes the `loader` of one request's context: the first call of a name makes the loader, later ones share it. */
export function requestLoaders(): <K, V>(
  name: string,
  batch: (keys: readonly K[]) => Promise<(V | Error)[]>,
) => DataLoader<K, V> {
  const made = new Map<string, DataLoader<unknown, unknown>>();
  return <K, V>(name: string, batch: (keys: readonly K[]) => Promise<(V | Error)[]>) => {
    const loader = made.get(name) ?? new DataLoader<unknown, unknown>((keys) => batch(keys as readonly K[]));
    made.set(name, loader);
    return loader as DataLoader<K, V>;
  };
}
