import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_BODY_DEPTH, parseJsonBody, repeatedMembers } from "./json-body.ts";
import { Refused } from "./refusal.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function refusal(body: Uint8Array): Refused {
  try {
    parseJsonBody(body);
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  throw new Error("the body was accepted");
}

describe("a body", () => {
  test("that is a JSON object is parsed as JSON.parse does, with or without white space", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 5 })),
        fc.nat(4),
        (value, space) => {
          const text = JSON.stringify(value, null, space);
          expect(parseJsonBody(bytes(text))).toEqual({ value: JSON.parse(text), repeated: [] });
        },
      ),
    );
  });

  test.each(["", "null", "1", '"text"', "[]", "{", '{"a":1}}', "{'a':1}", '{"a":NaN}', '{"a":1,}', "\u0000{}"])(
    "%j is refused as invalid_json",
    (text) => expect(refusal(bytes(text)).kind.code).toBe("invalid_json"),
  );

  test("that is not UTF-8 is refused", () => {
    expect(refusal(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)).message).toMatch(/UTF-8/);
  });

  test("of arbitrary bytes is parsed or refused, and nothing else", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        try {
          parseJsonBody(body);
        } catch (error) {
          expect(error).toBeInstanceOf(Refused);
        }
      }),
    );
  });

  test(`may nest ${MAX_BODY_DEPTH} levels deep and no deeper`, () => {
    const nested = (depth: number) => bytes(`${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`);
    expect(parseJsonBody(nested(MAX_BODY_DEPTH)).repeated).toEqual([]);
    expect(refusal(nested(MAX_BODY_DEPTH + 1)).message).toMatch(/nests deeper/);
    expect(refusal(bytes(`{"a":${"[".repeat(500_000)}${"]".repeat(500_000)}}`)).message).toMatch(/nests deeper/);
  });

  test("with a member called __proto__ gets that member and no other prototype", () => {
    const { value } = parseJsonBody(bytes('{"__proto__":{"admin":true}}'));
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect((value as { admin?: unknown }).admin).toBeUndefined();
  });
});

describe("repeated members", () => {
  test.each([
    ['{"a":1,"a":2}', ["/a"]],
    ['{"a":1,"\\u0061":2}', ["/a"]],
    ['{"a":{"b":1,"b":1}}', ["/a/b"]],
    ['{"a":[{"x":1},{"x":1,"x":2}]}', ["/a/1/x"]],
    ['{"a/b":1,"a/b":2,"m~n":1,"m~n":2}', ["/a~1b", "/m~0n"]],
    ['{"":1,"":2}', ["/"]],
    ['{"a":1,"b":{"a":1},"c":[{"a":1}],"a":2}', ["/a"]],
    ['{"a":"{\\"b\\":1,\\"b\\":2}"}', []],
    ['{"a":["b","b"],"b":"a"}', []],
    ['{"a":[[1,{"k":1,"k":1}],2]}', ["/a/0/1/k"]],
  ])("of %s are %j", (text, expected) => expect(repeatedMembers(text)).toEqual(expected));

  test("are found wherever a member is put in twice, and nowhere else", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { minKeys: 1, noNullPrototype: true }),
        fc.nat(),
        (value, pick) => {
          const keys = Object.keys(value);
          const key = keys[pick % keys.length]!;
          const text = JSON.stringify(value);
          expect(repeatedMembers(text)).toEqual([]);
          const pointer = `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
          expect(repeatedMembers(`${text.slice(0, -1)},${JSON.stringify(key)}:0}`)).toEqual([pointer]);
        },
      ),
    );
  });
});
