import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OpenStream, OpenStreams, STREAM_KINDS } from "./open-streams.ts";

const never = () => {
  throw new Error("nothing had to give way");
};

describe("a team's streams", () => {
  it("are refused beyond its limit, with the limit and the time to wait", () => {
    const streams = new OpenStreams({ perTeam: 2, withoutKey: 1 });
    streams.open("socket", "a");
    streams.open("events", "a");
    expect(() => streams.open("bytes", "a")).toThrow(
      expect.objectContaining({
        kind: expect.objectContaining({ code: "too_many_streams", status: 429 }),
        message: expect.stringContaining("The limit is 2."),
        detail: expect.objectContaining({ retryAfterSeconds: 5, extra: { limit: 2, seen: 3 } }),
      }),
    );
    expect(streams.byKind).toEqual({ socket: 1, events: 1, bytes: 0 });
    streams.open("bytes", "b");
  });

  it("count nothing that was gone before its key was known", () => {
    const streams = new OpenStreams({ perTeam: 1, withoutKey: 1 });
    const gone = streams.openWithoutKey("socket", never);
    gone.close();
    gone.belongsTo("a");
    expect([streams.ofTeam("a"), streams.withoutKey, streams.byKind.socket]).toEqual([0, 0, 0]);
  });
});

describe("operations on a team's streams", () => {
  it("are bounded together by what its streams have on average", () => {
    const streams = new OpenStreams({ perTeam: 2, withoutKey: 1 });
    const [one, other] = [streams.open("socket", "a"), streams.open("events", "a")];
    const ends = Array.from({ length: 20 }, () => one.begin(1));
    expect(() => other.begin(1)).toThrow(
      expect.objectContaining({
        kind: expect.objectContaining({ code: "too_many_team_operations", status: 429 }),
        detail: expect.objectContaining({ retryAfterSeconds: 5, extra: { limit: 20, seen: 21 } }),
      }),
    );
    for (const end of ends.slice(0, 2)) end();
    ends[0]!();
    expect(streams.operationsOfTeam("a")).toBe(18);
    other.begin(200_000);
    expect(() => other.begin(100_000)).toThrow(
      expect.objectContaining({ kind: expect.objectContaining({ code: "team_operations_too_large" }) }),
    );
    streams.open("socket", "b").begin(100_000);
  });

  it("count on when their streams have gone, until they are over themselves", () => {
    const streams = new OpenStreams({ perTeam: 1, withoutKey: 1 });
    const first = streams.open("socket", "a");
    const end = first.begin(1);
    first.close();
    expect([streams.ofTeam("a"), streams.operationsOfTeam("a")]).toEqual([0, 1]);
    streams.open("socket", "a");
    expect([streams.ofTeam("a"), streams.operationsOfTeam("a")]).toEqual([1, 1]);
    end();
    expect([streams.ofTeam("a"), streams.operationsOfTeam("a")]).toEqual([1, 0]);
  });

  it("count for nobody without a team", () => {
    const streams = new OpenStreams({ perTeam: 1, withoutKey: 1 });
    for (let n = 0; n < 20; n++) streams.openWithoutKey("socket", () => {}).begin(1_000_000)();
  });
});

describe("streams whose callers have shown no key", () => {
  it("give way, oldest first and each once, and those that show one stay", () => {
    const streams = new OpenStreams({ perTeam: 1, withoutKey: 2 });
    const gaveWay: number[] = [];
    const [first] = Array.from({ length: 5 }, (_, n) => {
      const stream = streams.openWithoutKey("socket", () => gaveWay.push(n));
      if (n === 0) stream.belongsTo("a");
      return stream;
    });
    expect(gaveWay).toEqual([1, 2]);
    expect([streams.ofTeam("a"), streams.withoutKey]).toEqual([1, 2]);
    first!.close();
    expect(streams.ofTeam("a")).toBe(0);
  });

  it("stay nobody's when their team has too many", () => {
    const streams = new OpenStreams({ perTeam: 1, withoutKey: 1 });
    streams.open("socket", "a");
    const second = streams.openWithoutKey("socket", never);
    expect(() => second.belongsTo("a")).toThrow(/too many streams/);
    expect([streams.ofTeam("a"), streams.withoutKey]).toEqual([1, 1]);
    second.close();
    expect([streams.ofTeam("a"), streams.withoutKey]).toEqual([1, 0]);
  });
});

it("counts what is open, whatever is opened, claimed and closed in whatever order, and nothing in the end", () => {
  const step = fc.record({
    does: fc.constantFrom("open", "come", "claim", "close"),
    kind: fc.constantFrom(...STREAM_KINDS),
    team: fc.constantFrom("a", "b"),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const streams = new OpenStreams({ perTeam: 3, withoutKey: 4 });
      const open = new Map<OpenStream, string | null>();
      const all: OpenStream[] = [];
      const keep = (stream: OpenStream, team: string | null) => {
        open.set(stream, team);
        all.push(stream);
      };
      const of = (team: string | null) => [...open.values()].filter((owner) => owner === team).length;
      for (const { does, kind, team, which } of steps) {
        const stream = all[which % Math.max(1, all.length)];
        const isFull = of(team) >= 3;
        if (does === "come") {
          const come: OpenStream = streams.openWithoutKey(kind, () => {
            const oldest = [...open].find(([, owner]) => owner === null)![0];
            oldest.close();
            open.delete(oldest);
          });
          keep(come, null);
        } else if (does === "open") {
          if (isFull) expect(() => streams.open(kind, team)).toThrow();
          else keep(streams.open(kind, team), team);
        } else if (stream && does === "claim") {
          const mayClaim = open.get(stream) === null;
          if (mayClaim && isFull) expect(() => stream.belongsTo(team)).toThrow();
          else stream.belongsTo(team);
          if (mayClaim && !isFull) open.set(stream, team);
        } else if (stream && does === "close") {
          stream.close();
          open.delete(stream);
        }
        expect([streams.ofTeam("a"), streams.ofTeam("b"), streams.withoutKey]).toEqual([of("a"), of("b"), of(null)]);
        const { socket, events, bytes } = streams.byKind;
        expect(socket + events + bytes).toBe(open.size);
      }
      for (const stream of all) stream.close();
      expect([streams.ofTeam("a"), streams.ofTeam("b"), streams.withoutKey]).toEqual([0, 0, 0]);
      expect(streams.byKind).toEqual({ socket: 0, events: 0, bytes: 0 });
    }),
  );
});
