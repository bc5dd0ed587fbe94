import { type SyscallTable, syscallsOf } from "./syscalls.ts";

/** Classic BPF opcodes that a seccomp filter may use. */
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets into struct seccomp_data; both architectures are little-endian, so the low word of an argument is first. */
const NUMBER_OFFSET = 0;
const ARCH_OFFSET = 4;
const argumentOffset = (index: number) => 16 + 8 * index;

const KILL_PROCESS = 0x80000000;
const ALLOW = 0x7fff0000;
const fail = (errno: number) => 0x00050000 | errno;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** CLONE_NEW* of every namespace that the flags argument of clone can name. */
const NEW_NAMESPACE_FLAGS = 0x7e020000;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. AF_VSOCK and others reach past a network namespace. */
const SOCKET_FAMILIES = [1, 2, 10, 16];

interface Instruction {
  code: number;
  k: number;
  /** Labels to jump to; absent means the next instruction. */
  ifTrue?: string;
  ifFalse?: string;
  label?: string;
}

/** The compiled filter for `arch` (a `process.arch`), as bubblewrap reads it from a descriptor; null if unsupported. */
export function seccompProgram(arch: string): Buffer | null {
  const table = syscallsOf(arch);
  return table && assemble(instructionsFor(table));
}

function instructionsFor(table: SyscallTable): Instruction[] {
  const is = (number: number, target: string): Instruction => ({ code: JUMP_IF_EQUAL, k: number, ifTrue: target });
  const foreign = table.foreignAbiFrom;
  return [
    { code: LOAD, k: ARCH_OFFSET },
    { code: JUMP_IF_EQUAL, k: table.auditArch, ifFalse: "kill" },
    { code: LOAD, k: NUMBER_OFFSET },
    ...(foreign === null ? [] : [{ code: JUMP_IF_AT_LEAST, k: foreign, ifTrue: "absent" }]),
    // Its flags are behind a pointer that a filter can't follow; libc falls back to clone on ENOSYS.
    is(table.clone3, "absent"),
    is(table.clone, "clone"),
    is(table.ioctl, "ioctl"),
    is(table.socket, "socket"),
    is(table.socketpair, "socket"),
    ...Object.values(table.denied).map((number) => is(number, "deny")),
    { code: RETURN, k: ALLOW },
    { code: LOAD, k: argumentOffset(0), label: "clone" },
    { code: JUMP_IF_ANY_BIT, k: NEW_NAMESPACE_FLAGS, ifTrue: "deny", ifFalse: "allowed" },
    { code: LOAD, k: argumentOffset(1), label: "ioctl" },
    { code: JUMP_IF_EQUAL, k: TIOCSTI, ifTrue: "deny" },
    { code: JUMP_IF_EQUAL, k: TIOCLINUX, ifTrue: "deny", ifFalse: "allowed" },
    { code: LOAD, k: argumentOffset(0), label: "socket" },
    ...SOCKET_FAMILIES.map((family) => is(family, "allowed")),
    { code: RETURN, k: fail(EAFNOSUPPORT) },
    { code: RETURN, k: ALLOW, label: "allowed" },
    { code: RETURN, k: fail(EPERM), label: "deny" },
    { code: RETURN, k: fail(ENOSYS), label: "absent" },
    { code: RETURN, k: KILL_PROCESS, label: "kill" },
  ];
}

/** struct sock_filter: u16 code, u8 jt, u8 jf, u32 k. Jumps are forward and at most 255 instructions far. */
function assemble(program: Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach((instruction, index) => {
    const distance = (label: string | undefined): number => {
      if (label === undefined) return 0;
      const target = program.findIndex((other) => other.label === label);
      const jump = target - index - 1;
      if (target < 0 || jump < 0 || jump > 255) throw new Error(`seccomp filter: no forward jump to ${label}`);
      return jump;
    };
    bytes.writeUInt16LE(instruction.code, index * 8);
    bytes.writeUInt8(distance(instruction.ifTrue), index * 8 + 2);
    bytes.writeUInt8(distance(instruction.ifFalse), index * 8 + 3);
    bytes.writeUInt32LE(instruction.k >>> 0, index * 8 + 4);
  });
  return bytes;
}
