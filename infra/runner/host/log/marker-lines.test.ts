import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_MARKER_LINE_BYTES, type Marker, MarkerLines, parseMarker } from "./marker-lines.ts";

function found(bytes: Buffer, cuts: number[]): Marker[] {
  const markers: Marker[] = [];
  const lines = new MarkerLines((marker) => markers.push(marker));
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < places.length; i++) lines.push(bytes.subarray(places[i - 1], places[i]));
  return markers;
}

function naive(text: string): Marker[] {
  return text
    .split("\n")
    .slice(0, -1)
    .flatMap((line) => parseMarker(Buffer.from(line)) ?? []);
}

const line = fc.oneof(
  fc.constantFrom(
    "",
    "epoch 1",
    "nodus.unit_done",
    "nodus.unit_don ",
    "nodus.rl_event {",
    "nodus.rl_event []",
    ' nodus.unit_done {"id":"a","ms":1}',
  ),
  fc
    .record({ id: fc.string({ maxLength: 5 }), ms: fc.double() })
    .map((unit) => `nodus.unit_done ${JSON.stringify(unit)}`),
  fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }).map((event) => `nodus.rl_event ${JSON.stringify(event)}`),
);

describe("MarkerLines", () => {
  it("finds what a reader of whole lines would find, however the reads are cut", () => {
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 12 }),
        fc.constantFrom("\n", "\r\n"),
        fc.boolean(),
        fc.array(fc.nat(2000), { maxLength: 20 }),
        (lines, eol, open, cuts) => {
          const text = lines.join(eol) + (open ? "" : eol);
          expect(found(Buffer.from(text), cuts)).toEqual(naive(text));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("takes a unit with its id and duration", () => {
    expect(found(Buffer.from('x\nnodus.unit_done {"id": "u-1", "ms": 12.5}\r\n'), [5, 9])).toEqual([
      { type: "unit", id: "u-1", ms: 12.5 },
    ]);
  });

  it("takes no unit whose id is too long, or whose duration is negative or no number", () => {
    const bad = [
      { id: "é".repeat(65), ms: 1 },
      { id: "a", ms: -1 },
      { id: "a", ms: "1" },
      { id: "", ms: 1 },
      { ms: 1 },
    ];
    for (const unit of bad) expect(parseMarker(Buffer.from(`nodus.unit_done ${JSON.stringify(unit)}`))).toBeNull();
  });

  it("does not count a last line that was never finished", () => {
    expect(found(Buffer.from('nodus.unit_done {"id":"a","ms":1}'), [])).toEqual([]);
  });

  it("passes over a line that never ends and takes the next one", () => {
    const text = `nodus.rl_event {"a":"${"x".repeat(MAX_MARKER_LINE_BYTES)}"}\nnodus.rl_event {"b":1}\n`;
    expect(found(Buffer.from(text), [70_000])).toEqual([{ type: "rl_event", event: { b: 1 } }]);
  });
});
