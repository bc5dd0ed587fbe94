/** Starts what dies before it lets its child go on, tells which child that is, and is killed before it hears of that. */
import { writeSync } from "node:fs";
import { startDyingBubblewrap } from "./dying-bubblewrap.ts";

const { child } = startDyingBubblewrap();
writeSync(1, `${JSON.stringify(child)}\n`);
process.kill(process.pid, "SIGKILL");
