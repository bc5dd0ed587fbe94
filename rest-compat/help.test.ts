import { describe, expect, it } from "vitest";
import { refusals } from "../infra/kernel/refusal.ts";
import { helpPage, helpUrl } from "./help.ts";

const kinds = refusals({ b_code: [409, "Is <b>bad</b> & odd.", 'Say "please".'], a_code: [400, "First.", "Mend it."] });

describe("the page of error codes", () => {
  it("has a section for each code at the place that errors point to", () => {
    const page = helpPage([...Object.values(kinds), kinds.a_code]);
    expect(page.match(/<h2 id="[^"]+"/g)).toEqual(['<h2 id="a_code"', '<h2 id="b_code"']);
    expect(helpUrl("https://nodus.test")("a_code")).toBe("https://nodus.test/help/errors#a_code");
  });

  it("says how a field is spelt on both faces", () => {
    const page = helpPage([]);
    for (const words of ["/policy/egress_allow", "workload.policy.egressAllow", "Idempotency-Key"])
      expect(page).toContain(words);
  });

  it("shows texts as text", () => {
    expect(helpPage(Object.values(kinds))).toContain("Is &lt;b&gt;bad&lt;/b&gt; &amp; odd.");
  });
});
