import { AccountEvent, AccountStream } from "./account-event/account-event.entity.ts";
import { Asset, AssetImport, AssetObject, AssetPin, AssetUpload } from "./asset/asset.entity.ts";
import { Connection, ConnectionUse } from "./connection/connection.entity.ts";
import { WebhookDelivery } from "./delivery/delivery.entity.ts";
import { QueryExport } from "./export/export.entity.ts";
import { GithubAccount } from "./github-account/github-account.entity.ts";
import { SinkLoad } from "./load/load.entity.ts";
import { Secret, SecretPin, SecretVersion } from "./secret/secret.entity.ts";
import { Webhook } from "./webhook/webhook.entity.ts";

/** Every table of the domain. */
export const dataEntities = [
  Asset,
  AssetImport,
  AssetObject,
  AssetPin,
  AssetUpload,
  Connection,
  ConnectionUse,
  GithubAccount,
  QueryExport,
  Secret,
  SecretPin,
  SecretVersion,
  SinkLoad,
  Webhook,
  AccountEvent,
  AccountStream,
  WebhookDelivery,
];
