import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { REDACTED, Redactor, SecretAutomaton, SHORTEST_SECRET_BYTES } from "./redact.ts";

/** Marks every byte of every occurrence, then writes each run of marked bytes as one mask. */
function naive(text: string, secrets: string[]): string {
  const covered = new Array<boolean>(text.length).fill(false);
  for (const secret of secrets.filter((s) => s.length >= SHORTEST_SECRET_BYTES)) {
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1))
      covered.fill(true, at, at + secret.length);
  }
  let out = "";
  for (let i = 0; i < text.length; i++) {
    if (!covered[i]) out += text[i];
    else if (!covered[i - 1]) out += REDACTED.toString();
  }
  return out;
}

function feed(redactor: Redactor, text: string, cuts: number[]): string {
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
  const parts = places.slice(1).map((to, i) => redactor.push(Buffer.from(text.slice(places[i], to))));
  return Buffer.concat([...parts, redactor.end()]).toString();
}

const letters = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: min, maxLength: max });

describe("Redactor", () => {
  it("masks what a reader of the whole text would mask, however the writes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(letters(1, 9), { maxLength: 5 }),
        letters(0, 200),
        fc.array(fc.nat(200), { maxLength: 12 }),
        (secrets, text, cuts) => {
          expect(feed(new Redactor(new SecretAutomaton(secrets)), text, cuts)).toBe(naive(text, secrets));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("never holds back as much as the longest secret", () => {
    fc.assert(
      fc.property(
        fc.array(letters(4, 9), { minLength: 1, maxLength: 4 }),
        fc.array(letters(1, 20), { maxLength: 10 }),
        (secrets, writes) => {
          const redactor = new Redactor(new SecretAutomaton(secrets));
          for (const write of writes) {
            redactor.push(Buffer.from(write));
            expect(redactor.heldBytes).toBeLessThan(Math.max(...secrets.map((s) => s.length)));
          }
        },
      ),
    );
  });

  it("never lets a whole secret out when pauses fall into the middle of it", () => {
    fc.assert(
      fc.property(letters(4, 20), fc.array(fc.nat(20), { maxLength: 6 }), (secret, cuts) => {
        const redactor = new Redactor(new SecretAutomaton([secret]));
        const places = [0, ...cuts.map((cut) => cut % secret.length).sort((a, b) => a - b), secret.length];
        const parts = places
          .slice(1)
          .flatMap((to, i) => [redactor.push(Buffer.from(secret.slice(places[i], to))), redactor.idle()]);
        const out = Buffer.concat([...parts, redactor.end()]).toString();
        expect(out).not.toContain(secret);
        expect(out.endsWith(REDACTED.toString())).toBe(true);
        expect(out.length - REDACTED.length).toBeLessThanOrEqual(secret.length / 4);
      }),
    );
  });

  it("lets a single byte that could begin a long secret go when nothing follows", () => {
    const redactor = new Redactor(new SecretAutomaton(["password"]));
    expect(redactor.push(Buffer.from("loss: 1p")).toString()).toBe("loss: 1");
    expect(redactor.idle().toString()).toBe("p");
    expect(redactor.push(Buffer.from("assword!")).toString()).toBe("[redacted]!");
  });

  it("keeps the beginning of a secret back for as long as nothing follows", () => {
    const redactor = new Redactor(new SecretAutomaton(["password"]));
    redactor.push(Buffer.from("passwo"));
    expect(redactor.idle()).toHaveLength(0);
    expect(redactor.push(Buffer.from("rk")).toString()).toBe("passwork");
  });

  it("finds a secret that stands in JSON", () => {
    const out = feed(new Redactor(new SecretAutomaton(['a"b\\c\n1'])), JSON.stringify({ token: 'a"b\\c\n1' }), [3, 9]);
    expect(out).toBe('{"token":"[redacted]"}');
  });

  it("leaves bytes that are no text as they are", () => {
    const bytes = Buffer.from([0, 255, 254, 128, 10, 13, 0]);
    expect(Buffer.concat([new Redactor(new SecretAutomaton(["word"])).push(bytes)])).toEqual(bytes);
  });
});
