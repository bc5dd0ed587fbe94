import { LIMITS } from "../../infra/kernel/limits.ts";
import { importAsset } from "../bytes/import-asset.ts";
import { uploadAsset } from "../bytes/upload-asset.ts";
import type { Table } from "../row.ts";

/** Code and data of the team. The list is not paged. */
export const ASSETS: Table = {
  importAsset,
  uploadAsset,
  listAssets: {
    kind: "graph",
    take: () => ({ first: LIMITS.assetListMax }),
    give: ({ assets }, _, { storage }) => ({ assets, ...storage }),
  },
  getAsset: { kind: "graph" },
  deleteAsset: { kind: "graph", take: ({ path }) => ({ input: path }) },
};
