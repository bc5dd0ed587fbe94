import { LIMITS } from "../../../infra/kernel/limits.ts";

/** A database that says what no database says, or more than anybody needs to hear. */
export class ProtocolViolation extends Error {
  override readonly name = "ProtocolViolation";
}

/** A message's kind and its length, which counts itself but not the kind. */
const HEADER_BYTES = 5;
const LENGTH_BYTES = 4;
/** Kinds that PostgreSQL answers with and that the driver knows. */
const KNOWN = new Set("123ACDEGHIKNRSTZcdnst");
/** Most columns that PostgreSQL gives a result. */
const COLUMNS = 1664;
/** A login takes four; each may cost this side the derivation of a key. */
const AUTHENTICATIONS = 6;

/**
 * Looks at what a database sends before the driver does. The driver trusts the lengths, counts and terminators that it
 * is told: it keeps a message of any size in memory, and reads one without its end for ever. Every `ProtocolViolation`
 * that is thrown here ends the connection.
 */
export class MessageGuard {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #kind = "";
  #bodyLeft = 0;
  #body: Buffer[] | null = null;
  /** What came outside of rows that are copied. */
  #saidBytes = 0;
  #copyLeft = 0;
  #columns = 0;
  #authentications = 0;
  #loggedIn = false;

  /** From now on rows may be copied out of the database, this many bytes of them in all. */
  allowCopy(maxBytes: number): void {
    this.#copyLeft = maxBytes;
  }

  /** Takes the next bytes, which may begin and end anywhere in a message. */
  take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headerBytes < HEADER_BYTES) at += this.#takeHeader(chunk, at);
      else at += this.#takeBody(chunk, at);
      if (this.#headerBytes === HEADER_BYTES && this.#bodyLeft === 0) this.#finish();
    }
  }

  #takeHeader(chunk: Buffer, at: number): number {
    const taken = chunk.copy(this.#header, this.#headerBytes, at, at + HEADER_BYTES - this.#headerBytes);
    this.#headerBytes += taken;
    if (this.#headerBytes === HEADER_BYTES) this.#begin();
    return taken;
  }

  #begin(): void {
    const kind = String.fromCharCode(this.#header[0]!);
    const length = this.#header.readUInt32BE(1);
    if (!KNOWN.has(kind)) throw new ProtocolViolation("a message of a kind that there is not");
    if (length < LENGTH_BYTES) throw new ProtocolViolation("a message that is shorter than its length");
    this.#kind = kind;
    this.#bodyLeft = length - LENGTH_BYTES;
    // Copied rows go through and are not kept; an empty one costs its header, or they would come without end.
    const copied = kind === "d" && this.#copyLeft > 0 && this.#bodyLeft > 0;
    this.#body = copied ? null : [];
    if (copied) this.#countCopied(this.#bodyLeft);
    else this.#countSaid(HEADER_BYTES + this.#bodyLeft);
  }

  #countCopied(bytes: number): void {
    if (bytes > LIMITS.connectionRowBytes) throw new ProtocolViolation("a row that is too large");
    this.#copyLeft -= bytes;
    if (this.#copyLeft < 0) throw new ProtocolViolation("more rows than were let in");
  }

  #countSaid(bytes: number): void {
    this.#saidBytes += bytes;
    if (this.#saidBytes > LIMITS.connectionSaidBytes) throw new ProtocolViolation("more than anybody needs to say");
  }

  #takeBody(chunk: Buffer, at: number): number {
    const taken = Math.min(chunk.length - at, this.#bodyLeft);
    this.#bodyLeft -= taken;
    // Copied, for a part of the chunk would keep all of it.
    this.#body?.push(Buffer.from(chunk.subarray(at, at + taken)));
    return taken;
  }

  #finish(): void {
    this.#headerBytes = 0;
    if (!this.#body) return;
    const body = Buffer.concat(this.#body);
    this.#body = null;
    this.#check(body);
  }

  #check(body: Buffer): void {
    switch (this.#kind) {
      case "R":
        this.#authentications += 1;
        if (this.#loggedIn || this.#authentications > AUTHENTICATIONS)
          throw new ProtocolViolation("a login that does not end");
        return;
      case "Z":
        this.#loggedIn = true;
        return;
      case "E":
      case "N":
        if (!endsFields(body)) throw new ProtocolViolation("an error without its end");
        return;
      case "T":
        this.#columns = columnCount(body);
        if (this.#columns < 0 || this.#columns > COLUMNS) throw new ProtocolViolation("more columns than there can be");
        return;
      case "D":
        if (!isRow(body, this.#columns)) throw new ProtocolViolation("a row that is not as its columns are");
    }
  }
}

/** Fields are a byte and a text up to a zero byte each, and a zero byte after the last. */
function endsFields(body: Buffer): boolean {
  return body.at(-1) === 0 && (body.length === 1 || body.at(-2) === 0);
}

function columnCount(body: Buffer): number {
  return body.length < 2 ? -1 : body.readInt16BE(0);
}

/** Whether a row has a value for each column and its values fill it exactly; null has the length -1 and no bytes. */
function isRow(body: Buffer, columns: number): boolean {
  if (columnCount(body) !== columns) return false;
  let at = 2;
  for (let i = 0; i < columns; i++) {
    if (at + LENGTH_BYTES > body.length) return false;
    const bytes = body.readInt32BE(at);
    if (bytes < -1) return false;
    at += LENGTH_BYTES + Math.max(bytes, 0);
  }
  return at === body.length;
}
