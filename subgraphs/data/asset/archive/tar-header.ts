import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";

export const TAR_BLOCK_BYTES = 512;

/** The members of a tar header that matter here. */
export interface TarHeader {
  path: string;
  size: number;
  mode: number;
  /** One character; `0` for a plain file of any age. */
  type: string;
}

/** Says what is wrong with an archive that cannot be read. */
export function damaged(why: string): Refused {
  return new Refused(ASSET.invalid_archive, { message: `The archive cannot be read: ${why}.` });
}

/** The header of a block; null for a block of zeros, which ends an archive. */
export function parseTarHeader(block: Buffer): TarHeader | null {
  if (isZero(block)) return null;
  if (!checksumFits(block)) throw damaged("a header's checksum is wrong");
  const type = block[156] === 0 ? "0" : String.fromCharCode(block[156]!);
  const name = text(block, 0, 100);
  const prefix = block.toString("latin1", 257, 263) === "ustar\0" ? text(block, 345, 155) : "";
  return { path: prefix ? `${prefix}/${name}` : name, size: number(block, 124, 12), mode: number(block, 100, 8), type };
}

export function isZero(bytes: Uint8Array): boolean {
  return bytes.every((b) => b === 0);
}

/** NUL-terminated text of a field. */
function text(block: Buffer, start: number, length: number): string {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? length : end);
}

/** A number in octal digits, or in base 256 where the first bit is set. */
function number(block: Buffer, start: number, length: number): number {
  const field = block.subarray(start, start + length);
  if (field[0]! & 0x80) {
    let value = BigInt(field[0]! & 0x7f);
    for (const byte of field.subarray(1)) value = value * 256n + BigInt(byte);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged("a size is out of range");
    return Number(value);
  }
  const digits = field
    .toString("latin1")
    .replace(/[\0 ].*$/s, (rest) => (/^[\0 ]*$/.test(rest) ? "" : rest))
    .trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw damaged("a number in a header is not octal");
  return Number.parseInt(digits, 8);
}

/** The sum of all bytes with the checksum's own field as blanks; old writers summed signed bytes. */
function checksumFits(block: Buffer): boolean {
  let unsigned = 0;
  let signed = 0;
  block.forEach((byte, i) => {
    const b = i >= 148 && i < 156 ? 0x20 : byte;
    unsigned += b;
    signed += b > 127 ? b - 256 : b;
  });
  const stated = number(block, 148, 8);
  return stated === unsigned || stated === signed;
}

/** Records of a pax header: `length key=value\n`, the length counting itself. */
export function parsePax(bytes: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = space > at && space - at <= 8 ? Number(bytes.toString("latin1", at, space)) : Number.NaN;
    const end = at + length;
    const equals = bytes.indexOf(0x3d, space);
    if (!Number.isInteger(length) || end > bytes.length || bytes[end - 1] !== 0x0a || equals < 0 || equals >= end)
      throw damaged("an extended header is malformed");
    records.set(bytes.toString("utf8", space + 1, equals), bytes.toString("utf8", equals + 1, end - 1));
    at = end;
  }
  return records;
}
