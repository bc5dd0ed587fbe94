import { Directive, Field, Int, ObjectType } from "type-graphql";
import { decodeCursor, encodeCursor, type Keyset } from "../kernel/cursor.ts";
import { LIMITS } from "../kernel/limits.ts";
import { COMMON, Refused } from "../kernel/refusal.ts";

/** Relay's page information. */
@Directive("@shareable")
@ObjectType("PageInfo", { description: "Where a page of a list ends and whether more follows." })
export class PageInfo {
  @Field(() => Boolean, { description: "More items follow this page.", simple: true })
  hasNextPage!: boolean;
  @Field(() => String, { nullable: true, description: "Cursor of the last item; null on an empty page.", simple: true })
  endCursor!: string | null;
}

/** A page of rows and the cursor of each. */
export interface Page<T> {
  edges: { node: T; cursor: string }[];
  nodes: T[];
  pageInfo: PageInfo;
}

/** The page size that a caller asked for; refused outside 1 to the maximum. */
export function pageSize(first: number | null | undefined, max: number = LIMITS.listPageMax): number {
  if (first === null || first === undefined) return Math.min(LIMITS.listPageDefault, max);
  if (!Number.isInteger(first) || first < 1 || first > max)
    throw new Refused(COMMON.invalid_limit, {
      field: "/first",
      message: `first must be a whole number from 1 to ${max}.`,
    });
  return first;
}

/** Reads one row more than the page to learn whether more follows. */
export async function page<T>(options: {
  list: string;
  first: number;
  after: string | null | undefined;
  /** Length of the keyset. */
  keyLength: number;
  keyOf: (row: T) => Keyset;
  /** Reads `limit` rows strictly after the keyset (null: from the start), in the list's order. */
  read: (after: (string | number)[] | null, limit: number) => Promise<T[]>;
}): Promise<Page<T>> {
  const after = options.after ? decodeCursor(options.list, options.after, options.keyLength) : null;
  const rows = await options.read(after, options.first + 1);
  const nodes = rows.slice(0, options.first);
  const edges = nodes.map((node) => ({ node, cursor: encodeCursor(options.list, options.keyOf(node)) }));
  return {
    edges,
    nodes,
    pageInfo: { hasNextPage: rows.length > options.first, endCursor: edges.at(-1)?.cursor ?? null },
  };
}

/** Makes the Relay connection types of a node: `const WorkloadConnection = connectionOf(Workload, "Workload")`. */
export function connectionOf<T extends object>(node: new () => T, name: string) {
  @ObjectType(`${name}Edge`, { description: `One item of a page of ${name} objects.` })
  class Edge {
    @Field(() => node, { description: "The item.", simple: true }) node!: T;
    @Field(() => String, { description: "Where the item stands; give it as `after` to go on from here.", simple: true })
    cursor!: string;
  }
  @ObjectType(`${name}Connection`, { description: `A page of ${name} objects.` })
  class Connection implements Page<T> {
    @Field(() => [Edge], { description: "The items with their cursors.", simple: true }) edges!: Edge[];
    @Field(() => [node], { description: "The items.", simple: true }) nodes!: T[];
    @Field(() => PageInfo, { description: "Whether more follows.", simple: true }) pageInfo!: PageInfo;
  }
  return Connection;
}

export const FIRST = {
  type: () => Int,
  options: { nullable: true, description: "How many items at most; 50 unless said." },
} as const;
