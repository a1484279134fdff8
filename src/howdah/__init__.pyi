from howdah.client.sdk import Client as Client
