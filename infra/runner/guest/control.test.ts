import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SocketFolder } from "../isolation/socket-folder.ts";
import { GuestControl } from "./control.ts";
import { CONTROL_SOCKET, type FromInit } from "./messages.ts";

let run: string;
let folder: SocketFolder;
beforeEach(() => {
  run = mkdtempSync(join(tmpdir(), "control-"));
  folder = new SocketFolder(run);
});
afterEach(() => {
  folder.close();
  rmSync(run, { recursive: true });
});

it("what init said just before it ended is heard, whatever was seen first", async () => {
  const heard: FromInit[] = [];
  const connected = Promise.withResolvers<void>();
  const control = await GuestControl.listen(folder, (message) => heard.push(message), connected.resolve);
  const init = net.connect(join(run, CONTROL_SOCKET));
  await connected.promise;
  init.end(`${JSON.stringify({ event: "starting" })}\n`); // it lies in the socket now, and nobody has read it
  expect(heard).toEqual([]);
  await control.heardOut();
  control.close();
  expect(heard).toEqual([{ event: "starting" }]);
  init.destroy();
});

it("nothing is waited for where init never came", async () => {
  const never = () => expect.unreachable("nobody connects");
  const control = await GuestControl.listen(folder, never, never);
  await control.heardOut();
  control.close();
});
