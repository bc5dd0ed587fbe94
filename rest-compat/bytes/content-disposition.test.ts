import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attachment } from "./content-disposition.ts";

describe("the name of a download", () => {
  it.each([
    ["model.tar", 'attachment; filename="model.tar"'],
    ['a"b\\c/../d', "attachment; filename=\"a_b_c_.._d\"; filename*=UTF-8''a%22b%5Cc%2F..%2Fd"],
    ["größe.bin", "attachment; filename=\"gr__e.bin\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.bin"],
    [
      "x\r\nSet-Cookie: a=b",
      "attachment; filename=\"x__Set-Cookie: a=b\"; filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a%3Db",
    ],
  ])("writes %j as %s", (name, header) => {
    expect(attachment(name)).toBe(header);
  });

  it("is printable ASCII without a stray quote for any name, and loses nothing", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const header = attachment(name);
        expect(header).toMatch(/^attachment; filename="[ !#-[\]-~]*"(; filename\*=UTF-8''[A-Za-z0-9._~%!-]*)?$/);
        const encoded = /filename\*=UTF-8''(.*)$/.exec(header)?.[1];
        expect(encoded === undefined ? /filename="(.*)"/.exec(header)![1] : decodeURIComponent(encoded)).toBe(
          name.toWellFormed(),
        );
      }),
    );
  });
});
