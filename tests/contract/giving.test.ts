import { GraphQLError } from "graphql";
import { describe, expect, it } from "vitest";
import { COMMON, refusals } from "../../infra/kernel/refusal.ts";
import { authorization, create, face, made } from "./small-face.ts";

const BUSY = refusals({ thing_busy: [503, "Busy.", "Wait."], thing_odd: [409, "Odd.", "Make it even."] });

describe("what a row gives", () => {
  it("drops nulls that the contract does not allow and keeps those that it does", async () => {
    const { app } = await face({ thing: () => ({ id: "thing_1", note: null, goneAt: null }) });
    const answer = await app.inject({ url: "/v1/things/thing_1", headers: { authorization } });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ id: "thing_1", gone_at: null });
    expect(answer.headers).toMatchObject({ "cache-control": "no-store", "x-request-id": expect.any(String) });
  });

  it("says that an answer is a replay", async () => {
    const { app } = await face({ createThing: () => ({ thing: { id: "thing_1" }, replayed: true }) });
    expect((await app.inject(create({}))).headers["idempotent-replayed"]).toBe("true");
    const first = await face(made);
    expect((await first.app.inject(create({}))).headers["idempotent-replayed"]).toBeUndefined();
  });

  it("answers 204 without a body where the contract documents none", async () => {
    const { app } = await face({ deleteThing: () => true });
    const answer = await app.inject({ method: "DELETE", url: "/v1/things/thing_1", headers: { authorization } });
    expect([answer.statusCode, answer.body]).toEqual([204, ""]);
  });

  it("answers 404 in the operation's envelope when the graph has nothing", async () => {
    const { app } = await face({ thing: () => null });
    const answer = await app.inject({ url: "/v1/things/nope", headers: { authorization } });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toEqual({
      code: "not_found",
      message: COMMON.not_found.message,
      fix: COMMON.not_found.fix,
      url: "https://nodus.test/help#not_found",
    });
    expect((await app.inject({ url: "/v1/things/%00", headers: { authorization } })).statusCode).toBe(404);
  });

  it("hands on a refusal of the graph with its particulars and its Retry-After", async () => {
    const refuse = (kind: { code: string; status: number; message: string; fix: string }, more: object) => () => {
      throw new GraphQLError(kind.message, {
        extensions: { code: kind.code, status: kind.status, fix: kind.fix, ...more },
      });
    };
    const odd = await face({ createThing: refuse(BUSY.thing_odd, { field: "/name", detail: { limit_usd: 3 } }) });
    expect((await odd.app.inject(create({}))).json()).toEqual({
      error: "thing_odd",
      message: "Odd.",
      fix: "Make it even.",
      field: "/name",
      limit_usd: 3,
      url: "https://nodus.test/help#thing_odd",
    });
    const busy = await face({ createThing: refuse(BUSY.thing_busy, { retryAfterSeconds: 7 }) });
    const answer = await busy.app.inject(create({}));
    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "7"]);
  });

  it("masks a fault and keeps its request id", async () => {
    const { app } = await face({
      thing: () => {
        throw new Error("password=hunter2");
      },
    });
    const answer = await app.inject({ url: "/v1/things/thing_1", headers: { authorization } });
    expect(answer.statusCode).toBe(500);
    expect(answer.json().code).toBe("internal_error");
    expect(answer.body).not.toContain("hunter2");
  });
});
