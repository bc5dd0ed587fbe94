import type { Keys } from "../gateway/keys.ts";
import { GATEWAY } from "../gateway/refusals.ts";
import type { Actor } from "../infra/kernel/actor.ts";
import { Refused } from "../infra/kernel/refusal.ts";

/**
 * What a sender with a key brings, for as long as the key holds. Throws `key_ended` as soon as it is known to have been
 * revoked or to have expired, also while the sender is silent. The source is left as it is: the refusal's answer has to get
 * out over the same connection.
 */
export async function* whileKeyHolds<T>(
  keys: Pick<Keys, "watch">,
  actor: Actor,
  source: AsyncIterator<T>,
): AsyncGenerator<T> {
  let hasEnded = false;
  let interrupt: () => void = () => {};
  const unwatch = keys.watch(actor, () => {
    hasEnded = true;
    interrupt();
  });
  // A fresh promise for each wait: racing against one that lives as long as the upload would keep every chunk's wait.
  const nextOrEnd = () =>
    new Promise<IteratorResult<T> | null>((resolve, reject) => {
      interrupt = () => resolve(null);
      source.next().then(resolve, reject);
    });
  try {
    for (;;) {
      const item = hasEnded ? null : await nextOrEnd();
      if (item === null || hasEnded) throw new Refused(GATEWAY.key_ended);
      if (item.done) return;
      yield item.value;
    }
  } finally {
    unwatch();
  }
}
