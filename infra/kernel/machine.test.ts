import { expect, test } from "vitest";
import { machine } from "./machine.ts";

const door = machine({
  name: "door",
  states: ["open", "closed", "gone"],
  events: ["push", "pull", "remove"],
  terminal: ["gone"],
  table: {
    open: { push: "closed", pull: "ignore", remove: "gone" },
    closed: { push: "refuse", pull: "open", remove: "gone" },
    gone: { push: "refuse", pull: "refuse", remove: "ignore" },
  },
});

test("every cell of a table is what the machine decides", () => {
  expect(door.print()).toBe(
    [
      "open: push→closed  pull→ignore  remove→gone",
      "closed: push→refuse  pull→open  remove→gone",
      "gone: push→refuse  pull→refuse  remove→ignore",
    ].join("\n"),
  );
  const cells = door.states.map((state) => door.events.map((event) => door.decide(state, event)));
  expect(cells).toEqual([
    ["closed", "ignore", "gone"],
    ["refuse", "open", "gone"],
    ["refuse", "refuse", "ignore"],
  ]);
});

test("a machine whose terminal state leads somewhere cannot be made", () => {
  const make = () =>
    machine({
      name: "ghost",
      states: ["alive", "dead"],
      events: ["rise"],
      terminal: ["dead"],
      table: { alive: { rise: "ignore" }, dead: { rise: "alive" } },
    });
  expect(make).toThrow("ghost: dead is terminal, yet rise leaves it");
});
