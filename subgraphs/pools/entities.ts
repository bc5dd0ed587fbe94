import { Pool } from "./pool/pool.entity.ts";

/** Every table of the domain. */
export const poolsEntities = [Pool];
