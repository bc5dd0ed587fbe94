import type { Spool } from "./spool.ts";

/**
 * Bytes of one frame's records. Intake writes a frame down in one transaction, so this is also how much output shares the
 * transaction's round trips and its flush to disk. What is on disk is sent at once, however little it is.
 */
const FRAME_BYTES = 1024 * 1024;
/** Bytes that may be under way without an acknowledgement. */
const WINDOW_BYTES = 4 * 1024 * 1024;

const NEWLINE = 10;
const COMMA = 44;

export interface SenderPort {
  /** Sends one text frame; resolves when the socket took it, or false when there is none. */
  send(frame: Buffer): Promise<boolean>;
  /** The spool can't be read; nothing more will be sent. */
  failed(error: Error): void;
}

/**
 * Sends a spool's records in order, as the bytes that they are on disk, from the last one that intake has. Live output
 * and replay after a break are one thing: both read the file, so memory stays small however far intake is behind.
 */
export class Sender {
  readonly #spool: Spool;
  readonly #head: Buffer;
  readonly #port: SenderPort;
  #position = 0;
  #sentSeq = 0;
  #acked = { seq: 0, position: 0 };
  #underWay: { seq: number; position: number }[] = [];
  #open = false;
  #epoch = 0;
  #pumping = false;

  constructor(spool: Spool, orderId: string, session: string, port: SenderPort) {
    this.#spool = spool;
    this.#port = port;
    const head = JSON.stringify({ type: "records", orderId, session, records: [] });
    this.#head = Buffer.from(head.slice(0, -2));
  }

  get ackedSeq(): number {
    return this.#acked.seq;
  }

  /** Records that wait for intake. */
  get unacknowledged(): number {
    return this.#spool.durable.seq - this.#acked.seq;
  }

  /** Intake has taken the session up and holds records up to `ackSeq`. */
  async resume(ackSeq: number): Promise<void> {
    this.pause();
    const epoch = this.#epoch;
    const acked = await this.#find(ackSeq, ackSeq >= this.#acked.seq ? this.#acked : { seq: 0, position: 0 });
    if (epoch !== this.#epoch) return; // lost again meanwhile
    this.#underWay = [];
    this.#acked = acked;
    this.#position = this.#acked.position;
    this.#sentSeq = this.#acked.seq;
    this.#open = true;
    this.pump();
  }

  /** The connection is lost. */
  pause(): void {
    this.#open = false;
    this.#epoch++;
  }

  acknowledge(seq: number): void {
    while (this.#underWay.length > 0 && this.#underWay[0]!.seq <= seq) this.#acked = this.#underWay.shift()!;
    this.pump();
  }

  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#pump().then(
      () => {
        this.#pumping = false;
        if (this.#mayRead()) this.pump();
      },
      (error: Error) => this.#port.failed(error),
    );
  }

  #mayRead(): boolean {
    return (
      this.#open && this.#position < this.#spool.durable.bytes && this.#position - this.#acked.position < WINDOW_BYTES
    );
  }

  async #pump(): Promise<void> {
    while (this.#mayRead()) {
      const from = this.#position;
      const lines = await this.#wholeLines(from);
      if (!this.#open || this.#position !== from) continue; // resumed elsewhere meanwhile
      const sent = { seq: this.#sentSeq + countLines(lines), position: from + lines.length };
      const frame = frameOf(this.#head, lines);
      this.#position = sent.position;
      this.#sentSeq = sent.seq;
      this.#underWay.push(sent);
      if (!(await this.#port.send(frame))) this.#open = false;
    }
  }

  async #wholeLines(position: number): Promise<Buffer> {
    for (let size = FRAME_BYTES; ; size *= 4) {
      const bytes = await this.#spool.read(position, size);
      const end = bytes.lastIndexOf(10);
      if (end >= 0) return bytes.subarray(0, end + 1);
      if (bytes.length < size) throw new Error(`spool holds no whole record at byte ${position}`);
    }
  }

  /** Where the record after `seq` begins. */
  async #find(seq: number, from: { seq: number; position: number }): Promise<{ seq: number; position: number }> {
    const place = { ...from };
    while (place.seq < seq && place.position < this.#spool.durable.bytes) {
      const lines = await this.#wholeLines(place.position);
      for (let end = lines.indexOf(10), start = 0; end >= 0 && place.seq < seq; end = lines.indexOf(10, start)) {
        place.position += end + 1 - start;
        place.seq++;
        start = end + 1;
      }
    }
    return place;
  }
}

function countLines(lines: Buffer): number {
  let count = 0;
  for (let end = lines.indexOf(10); end >= 0; end = lines.indexOf(10, end + 1)) count++;
  return count;
}

/** Lines hold no raw line break, so each break becomes the comma of a JSON array, and the last one its end. */
function frameOf(head: Buffer, lines: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(head.length + lines.length + 1);
  head.copy(frame);
  lines.copy(frame, head.length);
  for (
    let at = frame.indexOf(NEWLINE, head.length);
    at >= 0 && at < frame.length - 2;
    at = frame.indexOf(NEWLINE, at + 1)
  )
    frame[at] = COMMA;
  frame.write("]}", frame.length - 2);
  return frame;
}
