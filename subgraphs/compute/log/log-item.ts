import { Field, Int, ObjectType } from "type-graphql";
import { SafeInt } from "../../../infra/graphql/scalars.ts";

@ObjectType({ description: "How a generation's log ended." })
export class LogEnd {
  @Field(() => SafeInt, { description: "Bytes of the whole log.", simple: true }) totalBytes!: number;
  @Field(() => String, {
    nullable: true,
    description: "SHA-256 of the whole log in hex; null when its end was lost.",
    simple: true,
  })
  sha256!: string | null;
  @Field(() => Boolean, { description: "The log was cut off at its limit.", simple: true }) truncated!: boolean;
  @Field(() => Boolean, { description: "The end of the log was lost with its host.", simple: true }) tailLost!: boolean;
}

@ObjectType({ description: "One item of a stream of log bytes." })
export class WorkloadLogItem {
  @Field(() => String, {
    description:
      "Where the item ends, as `stage:generation:bytes`: give it as `after` to go on from here, or with another number of bytes to go on from there.",
    simple: true,
  })
  cursor!: string;
  @Field(() => String, { nullable: true, description: "The stage; null when nothing ever ran.", simple: true })
  stageId!: string | null;
  @Field(() => Int, { nullable: true, description: "The generation; null when nothing ever ran.", simple: true })
  generation!: number | null;
  @Field(() => SafeInt, { description: "Where the bytes start in the generation's log.", simple: true })
  offset!: number;
  @Field(() => String, { description: "The bytes as they were written, after redaction, in base64.", simple: true })
  data!: string;
  @Field(() => String, {
    description:
      "The bytes as text; a character that is cut belongs to the item that ends it, and what is no UTF-8 is U+FFFD.",
    simple: true,
  })
  text!: string;
  @Field(() => LogEnd, {
    nullable: true,
    description: "Set on the last item of a generation, which has no bytes.",
    simple: true,
  })
  end!: LogEnd | null;
  @Field(() => Boolean, { description: "True on the last item of the stream.", simple: true }) complete!: boolean;
}
