import { describe, expect, it } from "vitest";
import { seccompProgram } from "./seccomp.ts";
import { syscallsOf } from "./syscalls.ts";

const ERRNO = 0x00050000;
const ALLOW = 0x7fff0000;

/** Runs a filter as the kernel would, on one call. */
function judge(program: Buffer, call: { arch: number; number: number; args?: number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.arch, 4);
  for (const [i, arg] of (call.args ?? []).entries()) data.writeUInt32LE(arg >>> 0, 16 + 8 * i);
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const [code, yes, no, k] = [
      program.readUInt16LE(at * 8),
      program[at * 8 + 2]!,
      program[at * 8 + 3]!,
      program.readUInt32LE(at * 8 + 4),
    ];
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x15) at += accumulator === k ? yes : no;
    else if (code === 0x35) at += accumulator >= k ? yes : no;
    else if (code === 0x45) at += (accumulator & k) !== 0 ? yes : no;
    else if (code === 0x06) return k;
    else throw new Error(`unknown instruction ${code}`);
  }
}

describe.each(["x64", "arm64"])("the system call filter for %s", (arch) => {
  const table = syscallsOf(arch)!;
  const program = seccompProgram(arch)!;
  const call = (number: number, ...args: number[]) => judge(program, { arch: table.auditArch, number, args });

  it("refuses what is listed, and lets ordinary calls through", () => {
    for (const number of Object.values(table.denied)) expect(call(number)).toBe(ERRNO | 1);
    for (const number of [0, 1, 2, 3, 60, 1_000])
      if (!Object.values(table.denied).includes(number)) expect(call(number)).toBe(ALLOW);
  });

  it("lets threads and processes be made, but no namespaces", () => {
    expect(call(table.clone, 0x3d0f00)).toBe(ALLOW);
    expect(call(table.clone, 17)).toBe(ALLOW);
    for (const flag of [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
      expect(call(table.clone, 17 | flag)).toBe(ERRNO | 1);
    expect(call(table.clone3)).toBe(ERRNO | 38);
  });

  it("lets sockets of four families be made, and no terminal be typed into", () => {
    for (const family of [1, 2, 10, 16]) expect(call(table.socket, family)).toBe(ALLOW);
    for (const family of [0, 17, 38, 40])
      expect([call(table.socket, family), call(table.socketpair, family)]).toEqual([ERRNO | 97, ERRNO | 97]);
    expect(call(table.ioctl, 0, 0x5413)).toBe(ALLOW);
    for (const request of [0x5412, 0x541c]) expect(call(table.ioctl, 0, request)).toBe(ERRNO | 1);
  });

  it("kills what speaks another architecture's numbers", () => {
    expect(judge(program, { arch: 0x40000003, number: 1 })).toBe(0x80000000);
    if (arch === "x64") expect(call(0x40000001)).toBe(ERRNO | 38);
  });
});
