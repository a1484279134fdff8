from howdah.client.sdk import Client as Client

__all__ = ["Client"]
