import { AccountEvent, AccountStream } from "./account-event/account-event.entity.ts";
import { Asset, AssetObject, AssetPin, AssetUpload } from "./asset/asset.entity.ts";
import { Connection, ConnectionUse } from "./connection/connection.entity.ts";
import { WebhookDelivery } from "./delivery/delivery.entity.ts";
import { Secret, SecretPin, SecretVersion } from "./secret/secret.entity.ts";
import { Webhook } from "./webhook/webhook.entity.ts";

/** Every table of the domain. */
export const dataEntities = [
  Asset,
  AssetObject,
  AssetPin,
  AssetUpload,
  Connection,
  ConnectionUse,
  Secret,
  SecretPin,
  SecretVersion,
  Webhook,
  AccountEvent,
  AccountStream,
  WebhookDelivery,
];
