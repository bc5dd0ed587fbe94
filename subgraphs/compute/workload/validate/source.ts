import { isId } from "../../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { Source } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { at, type Pointer, refuse, spoken } from "./refuse.ts";
import { hasControl, utf8Bytes } from "./text.ts";

/** The image of a source that names none. */
const DEFAULT_IMAGE = "python:3.11-slim";
const MAX_IMAGE_LENGTH = 512;

/** Whether a source says anything at all. */
export function saysSomething(source: Source | undefined): source is Source {
  return Boolean(source && (source.image || source.command?.length || source.asset_id));
}

/** Checks what runs and fills in the image. A command may be missing; then nothing but the image could say what runs. */
export function checkSource(given: Source, field: Pointer): Source {
  const { image, asset_id: assetId } = given;
  if (image && (image.length > MAX_IMAGE_LENGTH || hasControl(image) || /\s/.test(image)))
    refuse(WORKLOAD.invalid_source, at(field, "image"), `${spoken(at(field, "image"))} is no image reference.`);
  if (assetId && !isId("asset", assetId))
    refuse(WORKLOAD.invalid_source, at(field, "asset_id"), `${spoken(at(field, "asset_id"))} is no asset id.`);
  checkCommand(given.command ?? [], at(field, "command"));
  return {
    image: image || DEFAULT_IMAGE,
    ...(given.command?.length ? { command: given.command } : {}),
    ...(assetId ? { asset_id: assetId } : {}),
  };
}

function checkCommand(command: readonly string[], field: Pointer): void {
  if (command.length > LIMITS.stageCommandArguments)
    refuse(WORKLOAD.invalid_source, field, `There are more than ${LIMITS.stageCommandArguments} arguments.`);
  const bytes = command.reduce((sum, argument) => sum + utf8Bytes(argument) + 1, 0);
  if (bytes > LIMITS.stageCommandBytes)
    refuse(WORKLOAD.invalid_source, field, `The command is longer than ${LIMITS.stageCommandBytes} bytes.`);
  command.forEach((argument, index) => {
    if (argument.includes("\0") || !argument.isWellFormed())
      refuse(WORKLOAD.invalid_source, at(field, index), "An argument is Unicode text without NUL.");
  });
  if (command[0] === "") refuse(WORKLOAD.invalid_source, at(field, 0), "The command's first argument is empty.");
}
