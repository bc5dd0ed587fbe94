import { expect, test } from "vitest";
import { allSteps, eachStep, heldApart, StepsHeld } from "./each-step.ts";
import { ofTeamThatWaited } from "./team-that-waited.ts";
import { TeamBusy } from "./unavailable.ts";

const fine = async () => {};
const fails = (message: string) => async () => {
  throw new Error(message);
};
const waits = (teamId: string | null) => async () => {
  if (teamId === "busy") throw ofTeamThatWaited(new TeamBusy(), "busy");
  const error = Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });
  throw teamId ? ofTeamThatWaited(error, teamId) : error;
};
const failure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

for (const [name, run] of Object.entries({ eachStep, allSteps })) {
  test(`${name} runs every step, and throws what failed`, async () => {
    let ran = 0;
    const counted = async () => {
      ran++;
    };
    expect(await failure(run([counted, fine, counted]))).toBeNull();
    expect(await failure(run([fails("a"), counted]))).toMatchObject({ message: "a" });
    const both = await failure(run([fails("a"), counted, fails("b")]));
    expect(both).toMatchObject({ message: "2 of 3 steps failed", errors: [{ message: "a" }, { message: "b" }] });
    expect(ran).toBe(4);
  });

  test(`${name} tells how many steps wait for what others hold, and of whom one is`, async () => {
    const end = await failure(run([waits(null), fine, waits("t"), waits("busy")]));
    expect(end).toBeInstanceOf(StepsHeld);
    expect(end).toMatchObject({ steps: 3, teamId: "t" });
  });
}

test("steps of steps are counted, and what failed is told apart from what waits", async () => {
  const inner = () => eachStep([waits("t"), waits("t"), fails("a")]);
  const end = await failure(eachStep([inner, waits("u"), () => eachStep([waits("v")]), fine]));
  const { failures, held } = heldApart([end]);
  expect(failures).toMatchObject([{ message: "a" }]);
  expect(held).toMatchObject({ steps: 4, teamId: "t" });
  expect(heldApart([new Error("b")])).toMatchObject({ failures: [{ message: "b" }], held: null });
});
