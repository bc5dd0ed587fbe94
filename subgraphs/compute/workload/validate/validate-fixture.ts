import { expect } from "vitest";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import type { WorkloadPayload } from "../workload.payload.ts";
import { validateWorkload } from "./validate.ts";

const now = new Date("2026-03-01T00:00:00Z");
const settings = { now, workloadNetwork: "open" as const, allowPrivateHosts: ["10.1.0.0/16"] };
/** What runs in every request that is judged here. */
export const source = { image: "busybox:1", command: ["echo", "hi"] };

export type Given = { [K in keyof WorkloadPayload]?: unknown };

/** Judges a request of which only what is given matters. */
export function judge(given: Given, repeatedMembers: string[] = []) {
  const empty = { requirements: {}, outcome: {}, policy: {}, continuity: {} };
  return validateWorkload({ ...empty, ...given } as WorkloadPayload, { ...settings, repeatedMembers });
}

/** `code field` of the refusal. */
export function refusalOf(given: Given, repeatedMembers: string[] = []): string {
  try {
    judge(given, repeatedMembers);
    return "accepted";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    expect(error.message).toMatch(/\.$/);
    return `${error.kind.code} ${error.detail.field}`;
  }
}
