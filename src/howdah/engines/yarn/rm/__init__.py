"""The ResourceManager's protocols, and what its answers mean."""
