import { readFileSync } from "node:fs";

/** This machine cannot run the platform; the message says what would. */
export class Unsupported extends Error {}

const LEAST_NODE = 20;

/** Throws `Unsupported` on anything but Linux on x64 or arm64 with glibc and Node 20 or newer. */
export function checkMachine(machine = thisMachine()) {
  const major = Number(machine.node.split(".")[0]);
  if (major < LEAST_NODE)
    throw new Unsupported(`Nodus needs Node ${LEAST_NODE} or newer to start, and this is Node ${machine.node}.`);
  if (machine.platform !== "linux")
    throw new Unsupported(
      `Nodus runs on Linux, and this is ${machine.platform}. On macOS or Windows, use a Linux virtual machine or a container.`,
    );
  if (machine.arch !== "x64" && machine.arch !== "arm64")
    throw new Unsupported(`Nodus runs on x64 and arm64, and this machine is ${machine.arch}.`);
  if (machine.musl)
    throw new Unsupported("Nodus needs a distribution with glibc (Debian, Ubuntu, Fedora, …), and this one has musl.");
}

function thisMachine() {
  return {
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
    musl: process.platform === "linux" && readFileSync("/proc/self/maps", "utf8").includes("/ld-musl-"),
  };
}
