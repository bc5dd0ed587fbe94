import { refusals } from "../../../infra/kernel/refusal.ts";

export const WORKSPACE = refusals({
  invalid_name: [
    400,
    "The workspace's name is not acceptable.",
    "Use 1 to 128 letters, digits, dots, dashes or underscores.",
  ],
  invalid_workspace_size: [400, "The workspace's size is not acceptable.", "Use a number of GiB greater than 0."],
  workspace_too_large: [
    400,
    "The workspace is larger than one may be.",
    "Ask for less, or spread the data over several.",
  ],
  workspace_exists: [
    409,
    "The team has a workspace of this name with another size.",
    "Use its size, or choose another name.",
  ],
  workspace_limit: [409, "The team has as many workspaces as it may.", "Use one of the workspaces that are there."],
});
