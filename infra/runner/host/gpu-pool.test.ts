import { describe, expect, it } from "vitest";
import { GpuPool } from "./gpu-pool.ts";

describe("GpuPool", () => {
  const names = ["null", "nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps"];

  it("gives each device to one guest at a time, with the files that all need", () => {
    const pool = new GpuPool(names);
    const first = pool.take(2);
    expect(first.devices).toEqual(["/dev/nvidia0", "/dev/nvidia2", "/dev/nvidiactl", "/dev/nvidia-uvm"]);
    expect(pool.take(1).devices[0]).toBe("/dev/nvidia10");
    expect(() => pool.take(1)).toThrow("1 GPUs were ordered and 0 are free");
    first.release();
    first.release();
    expect(pool.take(2).devices.slice(0, 2)).toEqual(["/dev/nvidia0", "/dev/nvidia2"]);
    expect(() => pool.take(1)).toThrow("0 are free");
  });

  it("shows nothing of a GPU to a guest that ordered none", () => {
    expect(new GpuPool(names).take(0).devices).toEqual([]);
  });
});
