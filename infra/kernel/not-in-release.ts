import { refusals } from "./refusal.ts";

/** What the contract describes and this release does not take: the REST face and the domain refuse it in the same words. */
export const NOT_IN_RELEASE = refusals({
  bucket_inputs_unsupported: [
    400,
    "Inputs from a bucket are not part of this release.",
    "Import the object as an asset and give its asset_id.",
  ],
});
