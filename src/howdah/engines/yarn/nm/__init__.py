"""The NodeManager's protocol, and the description of the containers that it starts."""
