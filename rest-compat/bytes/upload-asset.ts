import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { BytesRow } from "../row.ts";

/** The body is the file itself and goes to the store as it arrives; the record is read from the graph afterwards. */
export const uploadAsset: BytesRow = {
  kind: "bytes",
  document: true,
  serve: async ({ caller, wire, contentType, content, ports, answerWith }) => {
    // A form's boundaries would end up inside the file.
    if (contentType && /^multipart\//i.test(contentType))
      throw new Refused(COMMON.invalid_request, {
        message: "Forms are not taken here.",
        fix: "Send the file's bytes as the body, as application/octet-stream.",
      });
    const id = await ports.uploadAsset({ ...caller, name: String(wire.query.name), content });
    return answerWith({ id });
  },
};
