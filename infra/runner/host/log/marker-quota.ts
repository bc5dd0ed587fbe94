import type { Marker } from "./marker-lines.ts";

/** Units that may wait for intake before further ones are only counted. */
const WAITING_UNITS = 10_000;
/** Units of one generation in all. */
const UNITS = 1_000_000;
/** RL events of one generation, which is what the platform keeps of a workload. */
const RL_EVENTS = 100_000;
const RL_EVENT_BYTES = 64 * 1024 * 1024;

/** Bounds what the markers of one guest may take of the host's disk, whatever the guest prints. */
export class MarkerQuota {
  #units = 0;
  #rlEvents = 0;
  #rlBytes = 0;
  #droppedUnits = 0;

  get droppedUnits(): number {
    return this.#droppedUnits;
  }

  /** Whether a marker is to be recorded. @param waiting records that intake has not confirmed */
  admits(marker: Marker, waiting: number): boolean {
    if (marker.type === "rl_event") {
      this.#rlEvents++;
      this.#rlBytes += Buffer.byteLength(JSON.stringify(marker.event));
      return this.#rlEvents <= RL_EVENTS && this.#rlBytes <= RL_EVENT_BYTES;
    }
    const admitted = waiting <= WAITING_UNITS && this.#units < UNITS;
    if (admitted) this.#units++;
    else this.#droppedUnits++;
    return admitted;
  }
}
