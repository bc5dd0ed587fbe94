/** Results that may be sent in one turn of the event loop, by all streams together. */
const RESULTS_PER_TURN = 256;

let sent = 0;
let isCounting = false;

/**
 * Counts one result that was sent; gives a promise for the next turn of the event loop when this turn has had its share.
 * A source that is always ready, such as a long history, would otherwise keep the loop from everybody else's sockets.
 */
export function nextTurnIfBusy(): Promise<void> | null {
  if (!isCounting) {
    isCounting = true;
    setImmediate(() => {
      isCounting = false;
      sent = 0;
    });
  }
  sent++;
  return sent > RESULTS_PER_TURN ? new Promise((resolve) => setImmediate(resolve)) : null;
}
