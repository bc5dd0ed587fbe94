import { BucketSpace } from "../infra/objects/bucket-space.ts";
import { DiskSpace, everySpace, type StorageSpace } from "../infra/objects/storage-space.ts";
import type { Parts } from "./parts.ts";

/** Whether there is room for new work: on the data folder's disk, and in the bucket where there is one. */
export function spaceOf({ settings, objects, clock, logger }: Parts): StorageSpace {
  const reserveBytes = settings.diskReserveMib * 1024 * 1024;
  const disk = new DiskSpace({ folder: settings.dataDir, reserveBytes, clock, logger });
  return settings.s3Bucket ? everySpace([disk, new BucketSpace({ store: objects.results, clock, logger })]) : disk;
}
