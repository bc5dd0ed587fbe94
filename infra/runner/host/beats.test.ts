import { describe, expect, it } from "vitest";
import { Beats } from "./beats.ts";

describe("Beats", () => {
  it("date contact by the question, whichever answer comes first", () => {
    const beats = new Beats();
    const [first, second] = [beats.send(100), beats.send(200)];
    expect(beats.answered(null)).toBeNull();
    expect(beats.answered(second)).toBe(200);
    expect(beats.answered(first)).toBeNull();
  });

  it("take an answer without a number for the one to the oldest open beat", () => {
    const beats = new Beats();
    beats.send(100);
    beats.send(200);
    expect(beats.answered(undefined)).toBe(100);
    expect(beats.answered(undefined)).toBe(200);
    expect(beats.answered(undefined)).toBeNull();
  });

  it("know nothing of another connection's beats, nor of ones that were never sent", () => {
    const beats = new Beats();
    const before = beats.send(100);
    beats.forget();
    expect(beats.answered(before)).toBeNull();
    expect(beats.answered(99)).toBeNull();
    expect(beats.send(300)).toBeGreaterThan(before);
  });
});
