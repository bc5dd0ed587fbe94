const MEDIA: Record<string, string> = {
  json: "application/json",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
  txt: "text/plain",
  log: "text/plain",
  md: "text/markdown",
  html: "text/html",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  svg: "image/svg+xml",
  pdf: "application/pdf",
  tar: "application/x-tar",
  zip: "application/zip",
  gz: "application/gzip",
  parquet: "application/vnd.apache.parquet",
};

/** By the file's extension; what is not known is just bytes. */
export function mediaTypeOf(path: string): string {
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return MEDIA[extension] ?? "application/octet-stream";
}
