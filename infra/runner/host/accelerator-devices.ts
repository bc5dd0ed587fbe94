import { readdirSync } from "node:fs";

/** Device files of the machine's NVIDIA GPUs; empty where there are none. */
export function acceleratorDevices(): string[] {
  return readdirSync("/dev")
    .filter((name) => /^nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)$/.test(name))
    .map((name) => `/dev/${name}`);
}
